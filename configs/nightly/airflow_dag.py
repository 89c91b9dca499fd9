"""A nightly release as a task of Airflow 3. The password is in the environment of the worker, or in ~/.pgpass."""

from datetime import UTC, datetime, timedelta

from airflow.exceptions import AirflowFailException
from airflow.sdk import dag, task


@dag(schedule="30 2 * * *", start_date=datetime(2024, 1, 1, tzinfo=UTC), catchup=False, max_active_runs=1)
def nightly_release():
    @task(retries=2, retry_delay=timedelta(minutes=15))
    def release():
        import anon
        from anon.errors import AnonError, SourceError

        try:
            result = anon.run("/etc/anon/nightly.yaml")
        except SourceError:
            raise  # the source may answer the next time
        except AnonError as error:
            raise AirflowFailException(str(error)) from None  # needs a person
        return result.to_dict()

    release()


nightly_release()
