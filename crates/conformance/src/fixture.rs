//! What a store brings to the suite: an empty store for each case.

use crate::{harness::Bench, outbox::bench::Bench as OutboxBench};
use std::{future::Future, pin::Pin, sync::Arc};
use tidegate_core::{OutboxStore, Store};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
pub(crate) type Reopen = Arc<dyn Fn() -> Boxed<Arc<dyn Store>> + Send + Sync>;

/// An empty, migrated store for one case.
pub struct Fresh {
    store: Arc<dyn Store>,
    reopen: Option<Reopen>,
    afterwards: Option<Boxed<()>>,
}

impl Fresh {
    /// A store that nobody else uses.
    pub fn new(store: impl Store + 'static) -> Self {
        Self { store: Arc::new(store), reopen: None, afterwards: None }
    }

    /// How to open the same content once more. Stores that are durable need it.
    pub fn reopen<F, S>(mut self, open: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = S> + Send + 'static,
        S: Store + 'static,
    {
        self.reopen = Some(Arc::new(move || {
            let opening = open();
            Box::pin(async move { Arc::new(opening.await) as Arc<dyn Store> })
        }));
        self
    }

    /// What to do when the case has passed, and the store is dropped. After a failure the content
    /// stays, for people to look at.
    pub fn afterwards(mut self, cleanup: impl Future<Output = ()> + Send + 'static) -> Self {
        self.afterwards = Some(Box::pin(cleanup));
        self
    }

    pub(crate) fn bench(&self) -> Bench {
        Bench::new(self.store.clone(), self.reopen.clone())
    }

    pub(crate) fn outbox_bench(&self) -> OutboxBench {
        OutboxBench::new(Handles::Shared(self.store.clone(), self.reopen.clone()))
    }

    pub(crate) async fn close(self) {
        drop((self.store, self.reopen));
        if let Some(afterwards) = self.afterwards {
            afterwards.await;
        }
    }
}

/// An empty outbox for one case, of a store that has nothing else.
pub struct FreshOutbox {
    open: Arc<dyn Fn() -> Arc<dyn OutboxStore> + Send + Sync>,
    afterwards: Option<Boxed<()>>,
}

impl FreshOutbox {
    /// How to get a handle to an outbox that nobody else uses. It is called once for people, and once for each relay:
    /// what a relay has read is remembered in its handle.
    pub fn new<S: OutboxStore + 'static>(open: impl Fn() -> S + Send + Sync + 'static) -> Self {
        Self { open: Arc::new(move || Arc::new(open())), afterwards: None }
    }

    /// See [`Fresh::afterwards`].
    pub fn afterwards(mut self, cleanup: impl Future<Output = ()> + Send + 'static) -> Self {
        self.afterwards = Some(Box::pin(cleanup));
        self
    }

    pub(crate) fn outbox_bench(&self) -> OutboxBench {
        OutboxBench::new(Handles::Own(self.open.clone()))
    }

    pub(crate) async fn close(self) {
        drop(self.open);
        if let Some(afterwards) = self.afterwards {
            afterwards.await;
        }
    }
}

/// Where handles come from.
#[derive(Clone)]
pub(crate) enum Handles {
    /// All are the same.
    Shared(Arc<dyn Store>, Option<Reopen>),
    /// Each is new.
    Own(Arc<dyn Fn() -> Arc<dyn OutboxStore> + Send + Sync>),
}

impl Handles {
    pub(crate) fn open(&self) -> Arc<dyn OutboxStore> {
        match self {
            Self::Shared(store, _) => store.clone(),
            Self::Own(open) => open(),
        }
    }

    /// Handles to the same content that share nothing else; `None` if it is in this process only.
    pub(crate) async fn reopen(&self) -> Option<Self> {
        match self {
            Self::Own(_) => Some(self.clone()),
            Self::Shared(store, None) => {
                assert!(!store.capabilities().durable, "the fixture of a durable store reopens it");
                None
            }
            Self::Shared(_, Some(reopen)) => {
                Some(Self::Shared(reopen().await, Some(reopen.clone())))
            }
        }
    }
}
