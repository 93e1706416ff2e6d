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
use std::{
    error::Error,
    future::Future,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};
use tidegate_core::{Class, Kind, StoreError, limits::STORE_DEADLINE};
use tidegate_pacer::{Clock, Gate, Hint, Options, Outcome, Pacer, Time};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep, sleep_until, timeout, timeout_at},
};

/// Requests of one kind that are on their way at a time, at most.
const MOST_AT_ONCE: u32 = 64;
/// … and at first: the pacer finds out what the table bears.
const AT_ONCE: u32 = 16;
/// How long a request waits that was throttled, the first time.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// … of a request for leases. Others may change the item with every transaction that sets something aside; they
/// pause for longer each time that they are disturbed, so that who says that it lives is among the first.
const LONGEST_LEASE_PAUSE: Duration = Duration::from_millis(200);
/// How long such a request waits at most for a transaction of this process.
const TURN: Duration = Duration::from_secs(1);

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
    /// Held by whoever of this process changes the item of leases or checks it in a transaction: DynamoDB refuses one
    /// of two that do so at once.
    turn: Mutex<()>,
    /// Whether AWS has taken the credentials before.
    is_known: AtomicBool,
}

/// How requests of a kind are sent.
struct Pace<'a> {
    gate: &'a Gate,
    /// If it must not meet another one of this process.
    turn: Option<&'a Mutex<()>>,
    /// How long it waits before it is sent again, at most.
    longest: Duration,
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
            turn: Mutex::default(),
            is_known: AtomicBool::new(false),
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
        self.call_partly(operation, send, |_| false).await
    }

    /// The same for requests of which DynamoDB may do only a part because they are too many: `is_throttled` says so.
    pub async fn call_partly<O, E, F>(
        &self,
        operation: &'static str,
        send: impl Fn() -> F,
        is_throttled: impl Fn(&O) -> bool,
    ) -> Result<O, Failure>
    where
        O: Answer,
        E: Error + ProvideErrorMetadata + 'static,
        F: Future<Output = Result<O, SdkError<E, HttpResponse>>>,
    {
        let gate = if O::WRITES { &self.writes } else { &self.reads };
        let pace = Pace { gate, turn: None, longest: LONGEST_PAUSE };
        let judge = |error: &_| judge(operation, &self.place, error);
        self.paced(pace, operation, send, judge, is_throttled).await
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
        let turn = O::WRITES.then_some(&self.turn);
        let pace = Pace { gate: &self.leases, turn, longest: LONGEST_LEASE_PAUSE };
        let judge = |error: &_| judge(operation, &self.place, error);
        self.paced(pace, operation, send, judge, |_| false).await
    }

    /// Carries out a transaction. However often it is sent, it is carried out once.
    pub async fn transact(
        &self,
        operation: &'static str,
        actions: Vec<TransactWriteItem>,
    ) -> Result<(), Failure> {
        self.transact_in_turn(operation, actions, None).await
    }

    /// The same for a transaction that checks or changes the item of leases.
    pub async fn transact_leased(
        &self,
        operation: &'static str,
        actions: Vec<TransactWriteItem>,
    ) -> Result<(), Failure> {
        self.transact_in_turn(operation, actions, Some(&self.turn)).await
    }

    async fn transact_in_turn(
        &self,
        operation: &'static str,
        actions: Vec<TransactWriteItem>,
        turn: Option<&Mutex<()>>,
    ) -> Result<(), Failure> {
        let request = self
            .sdk
            .transact_write_items()
            .set_transact_items(Some(actions))
            .client_request_token(format!("{:032x}", rand::random::<u128>()))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let judge = |error: &SdkError<TransactWriteItemsError, HttpResponse>| {
            judge_transaction(operation, &self.place, error)
        };
        let pace = Pace { gate: &self.writes, turn, longest: LONGEST_PAUSE };
        let send = || request.clone().send();
        let answer: Result<TransactWriteItemsOutput, Failure> =
            self.paced(pace, operation, send, judge, |_| false).await;
        answer.map(|_| ())
    }

    /// Sends a request until there is an answer. Every request may be sent again: what it changes depends on
    /// conditions that do not hold any more when it was carried out.
    async fn paced<O, E, F>(
        &self,
        pace: Pace<'_>,
        operation: &'static str,
        send: impl Fn() -> F,
        judge: impl Fn(&SdkError<E, HttpResponse>) -> Failure,
        is_throttled: impl Fn(&O) -> bool,
    ) -> Result<O, Failure>
    where
        O: Answer,
        F: Future<Output = Result<O, SdkError<E, HttpResponse>>>,
    {
        let deadline = Instant::now() + STORE_DEADLINE;
        let (mut pause, mut repeats) = (FIRST_PAUSE, REPEATS);
        let mut last = Failure::Throttled("the pace of the table".to_owned());
        loop {
            let Ok(Ok(permit)) = timeout_at(deadline, pace.gate.start(&self.clock)).await else {
                return Err(last);
            };
            let turn = pace.turn.map(|turn| timeout(TURN, turn.lock()));
            let turn = match turn {
                Some(turn) => turn.await.ok(),
                None => None,
            };
            self.meter.sent(O::OPERATION);
            let answer = timeout_at(deadline, send()).await;
            drop(turn);
            let Ok(answer) = answer else {
                permit.end(Outcome::TimedOut, Hint::default(), self.clock.now());
                let problem = format!("{} gives no answer in time", self.place);
                let error = StoreError::new(Kind::Deadline, Class::Transient, operation, problem);
                return Err(Failure::Store(error));
            };
            let failure = match answer {
                Ok(answer) => {
                    self.is_known.store(true, Relaxed);
                    let throttled = Outcome::Throttled { retry_after: None };
                    let outcome =
                        if is_throttled(&answer) { throttled } else { Outcome::Succeeded };
                    permit.end(outcome, Hint::default(), self.clock.now());
                    self.meter.answered(&answer);
                    return Ok(answer);
                }
                Err(error) => self.weigh(operation, judge(&error)),
            };
            permit.end(outcome(&failure), Hint::default(), self.clock.now());
            match failure {
                Failure::Throttled(_) => self.meter.throttled(O::OPERATION),
                Failure::Busy(_) => {}
                Failure::Store(ref error) if error.class() == Class::Unavailable && repeats > 0 => {
                    repeats -= 1;
                }
                failure => return Err(failure),
            }
            if Instant::now() + pause >= deadline {
                return Err(failure);
            }
            last = failure;
            sleep(jittered(pause)).await;
            pause = (pause * 2).min(pace.longest);
        }
    }

    /// Credentials that AWS has taken before are being replaced, or were withdrawn: that may pass, and a relay goes
    /// on as soon as there are others.
    fn weigh(&self, operation: &'static str, failure: Failure) -> Failure {
        match failure {
            Failure::Credentials(told) if self.is_known.load(Relaxed) => Failure::Store(
                StoreError::new(Kind::Unreachable, Class::Unavailable, operation, told),
            ),
            Failure::Condition | Failure::Cancelled(_) => {
                self.is_known.store(true, Relaxed);
                failure
            }
            failure => failure,
        }
    }
}

fn transport() -> Result<Transport, StoreError> {
    Transport::new().map_err(|error| broken(format!("there is no client for HTTPS: {error}")))
}

fn broken(told: impl Into<String>) -> StoreError {
    StoreError::new(Kind::BadAddress, Class::Permanent, "open the store", told)
}

fn outcome(failure: &Failure) -> Outcome {
    match failure {
        // A condition that does not hold is an answer, and who is in the way of others is not too fast.
        Failure::Condition | Failure::Cancelled(_) | Failure::Busy(_) => Outcome::Succeeded,
        Failure::Throttled(_) => Outcome::Throttled { retry_after: None },
        Failure::Store(error) if error.kind() == Kind::Deadline => Outcome::TimedOut,
        Failure::Missing(_) | Failure::Credentials(_) | Failure::Invalid(_) | Failure::Store(_) => {
            Outcome::Failed
        }
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
