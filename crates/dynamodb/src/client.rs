//! The one place that talks to DynamoDB: pace, deadlines, and what was used.

use crate::{
    address::Address,
    error::{Failure, judge, judge_transaction},
    transport::Transport,
    usage::{Answer, Meter, Usage},
};
use aws_config::{BehaviorVersion, Region, SdkConfig, retry::RetryConfig, timeout::TimeoutConfig};
use aws_sdk_dynamodb::{
    error::SdkError,
    operation::transact_write_items::{TransactWriteItemsError, TransactWriteItemsOutput},
    types::{ReturnConsumedCapacity, TransactWriteItem},
};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use std::{error::Error, future::Future, time::Duration};
use tidegate_core::{Class, Kind, StoreError, limits::STORE_DEADLINE};
use tidegate_pacer::{Clock, Gate, Hint, Options, Outcome, Pacer, Time};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

/// Requests of one kind that are on their way at a time, at most.
const MOST_AT_ONCE: u32 = 64;
/// … and at first: the pacer finds out what the table bears.
const AT_ONCE: u32 = 16;
/// How long a request waits that was throttled, the first time.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How often a request is sent again whose connection broke.
const REPEATS: u32 = 3;

/// A connection to the tables of one outbox.
pub(crate) struct Client {
    pub sdk: aws_sdk_dynamodb::Client,
    pub address: Address,
    place: String,
    meter: Meter,
    clock: PaceClock,
    reads: Gate,
    writes: Gate,
    /// For leases, which no throttled message may hold up: a relay that cannot say that it lives loses its lanes.
    leases: Gate,
}

impl Client {
    /// Finds region and credentials as the AWS SDK does. Sends nothing yet.
    pub async fn connect(address: Address) -> Result<Self, StoreError> {
        let mut loader = aws_config::defaults(BehaviorVersion::latest()).http_client(transport()?);
        if let Some(region) = &address.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(profile) = &address.profile {
            loader = loader.profile_name(profile);
        }
        Self::configured(address, loader.load().await)
    }

    /// With the region and the credentials of a configuration.
    pub fn configured(address: Address, config: SdkConfig) -> Result<Self, StoreError> {
        if config.region().is_none() {
            return Err(broken(
                "no AWS region is known: add `region=REGION` to the address, or set AWS_REGION",
            ));
        }
        let mut builder = config
            .into_builder()
            .http_client(transport()?)
            // Requests are repeated here, where the pace is known.
            .retry_config(RetryConfig::disabled())
            .timeout_config(TimeoutConfig::disabled());
        if let Some(endpoint) = &address.endpoint {
            builder = builder.endpoint_url(endpoint);
        }
        let options = Options { max: MOST_AT_ONCE, start: Some(AT_ONCE), ..Options::default() };
        let pacer = Pacer::new(options, [address.table.clone()])
            .map_err(|error| broken(format!("the table has no pace: {error}")))?;
        let leases = Pacer::new(Options::default(), [address.side_table.clone()])
            .map_err(|error| broken(format!("the table has no pace: {error}")))?;
        Ok(Self {
            sdk: aws_sdk_dynamodb::Client::new(&builder.build()),
            place: address.place(),
            meter: Meter::default(),
            clock: PaceClock(Instant::now()),
            reads: pacer.gate("read"),
            writes: pacer.gate("write"),
            leases: leases.gate("lease"),
            address,
        })
    }

    pub fn usage(&self) -> Usage {
        self.meter.usage()
    }

    /// Sends a request, and again while it is throttled. `send` begins it anew each time.
    pub async fn call<O, E, F>(
        &self,
        operation: &'static str,
        send: impl Fn() -> F,
    ) -> Result<O, Failure>
    where
        O: Answer,
        E: Error + ProvideErrorMetadata + 'static,
        F: Future<Output = Result<O, SdkError<E, HttpResponse>>>,
    {
        let gate = if O::WRITES { &self.writes } else { &self.reads };
        self.paced(gate, operation, REPEATS, send, |error| judge(operation, &self.place, error))
            .await
    }

    /// The same for a write that must not be carried out twice: it is not sent again if its connection broke.
    pub async fn call_once<O, E, F>(
        &self,
        operation: &'static str,
        send: impl Fn() -> F,
    ) -> Result<O, Failure>
    where
        O: Answer,
        E: Error + ProvideErrorMetadata + 'static,
        F: Future<Output = Result<O, SdkError<E, HttpResponse>>>,
    {
        let judge = |error: &SdkError<E, HttpResponse>| judge(operation, &self.place, error);
        self.paced(&self.writes, operation, 0, send, judge).await
    }

    /// The same for leases.
    pub async fn call_leases<O, E, F>(
        &self,
        operation: &'static str,
        send: impl Fn() -> F,
    ) -> Result<O, Failure>
    where
        O: Answer,
        E: Error + ProvideErrorMetadata + 'static,
        F: Future<Output = Result<O, SdkError<E, HttpResponse>>>,
    {
        let judge = |error: &SdkError<E, HttpResponse>| judge(operation, &self.place, error);
        self.paced(&self.leases, operation, REPEATS, send, judge).await
    }

    /// Carries out a transaction. However often it is sent, it is carried out once.
    pub async fn transact(
        &self,
        operation: &'static str,
        actions: Vec<TransactWriteItem>,
    ) -> Result<(), Failure> {
        let request = self
            .sdk
            .transact_write_items()
            .set_transact_items(Some(actions))
            .client_request_token(format!("{:032x}", rand::random::<u128>()))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        self.call_transaction(operation, || request.clone().send()).await
    }

    /// Sends a transaction that `send` makes anew each time. If one of its copies was carried out and the answer was
    /// lost, the conditions of the next must refuse it.
    pub async fn call_transaction<F>(
        &self,
        operation: &'static str,
        send: impl Fn() -> F,
    ) -> Result<(), Failure>
    where
        F: Future<
            Output = Result<
                TransactWriteItemsOutput,
                SdkError<TransactWriteItemsError, HttpResponse>,
            >,
        >,
    {
        let judge = |error: &SdkError<TransactWriteItemsError, HttpResponse>| {
            judge_transaction(operation, &self.place, error)
        };
        self.paced(&self.writes, operation, REPEATS, send, judge).await.map(|_| ())
    }

    /// Sends a request until there is an answer. Every request may be sent again: what it changes depends on
    /// conditions that do not hold any more when it was carried out.
    async fn paced<O, E, F>(
        &self,
        gate: &Gate,
        operation: &'static str,
        mut repeats: u32,
        send: impl Fn() -> F,
        judge: impl Fn(&SdkError<E, HttpResponse>) -> Failure,
    ) -> Result<O, Failure>
    where
        O: Answer,
        F: Future<Output = Result<O, SdkError<E, HttpResponse>>>,
    {
        let deadline = Instant::now() + STORE_DEADLINE;
        let mut pause = FIRST_PAUSE;
        let mut told = "the pace of the table".to_owned();
        loop {
            let Ok(Ok(permit)) = timeout_at(deadline, gate.start(&self.clock)).await else {
                return Err(Failure::Throttled(told));
            };
            self.meter.sent(O::OPERATION);
            let Ok(answer) = timeout_at(deadline, send()).await else {
                permit.end(Outcome::TimedOut, Hint::default(), self.clock.now());
                let problem = format!("{} gives no answer in time", self.place);
                let error = StoreError::new(Kind::Deadline, Class::Transient, operation, problem);
                return Err(Failure::Store(error));
            };
            let failure = match &answer {
                Ok(_) => None,
                Err(error) => Some(judge(error)),
            };
            permit.end(outcome(failure.as_ref()), Hint::default(), self.clock.now());
            match (answer, failure) {
                (Ok(answer), _) => {
                    self.meter.answered(&answer);
                    return Ok(answer);
                }
                (Err(_), Some(Failure::Throttled(reason))) => {
                    self.meter.throttled(O::OPERATION);
                    told = reason;
                    if Instant::now() + pause >= deadline {
                        return Err(Failure::Throttled(told));
                    }
                    sleep(jittered(pause)).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                (Err(_), Some(Failure::Store(error)))
                    if error.class() == Class::Unavailable && repeats > 0 =>
                {
                    repeats -= 1;
                    sleep(jittered(pause)).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                (Err(_), failure) => return Err(failure.unwrap_or(Failure::Condition)),
            }
        }
    }
}

fn transport() -> Result<Transport, StoreError> {
    Transport::new().map_err(|error| broken(format!("there is no client for HTTPS: {error}")))
}

fn broken(told: impl Into<String>) -> StoreError {
    StoreError::new(Kind::BadAddress, Class::Permanent, "open the store", told)
}

fn outcome(failure: Option<&Failure>) -> Outcome {
    match failure {
        // A condition that does not hold is an answer.
        None | Some(Failure::Condition | Failure::Cancelled(_)) => Outcome::Succeeded,
        Some(Failure::Throttled(_)) => Outcome::Throttled { retry_after: None },
        Some(Failure::Store(error)) if error.kind() == Kind::Deadline => Outcome::TimedOut,
        Some(Failure::Missing(_) | Failure::Store(_)) => Outcome::Failed,
    }
}

/// From half of a pause to all of it, so that those who wait do not come back at once.
pub(crate) fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::random_range(0.5..=1.0))
}

/// Time since the client was made.
struct PaceClock(Instant);

impl Clock for PaceClock {
    fn now(&self) -> Time {
        self.0.elapsed()
    }

    fn sleep_until(&self, time: Time) -> impl Future<Output = ()> + Send {
        sleep_until(self.0 + time)
    }
}
