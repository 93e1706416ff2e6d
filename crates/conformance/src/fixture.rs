//! What a store brings to the suite: an empty store for each case.

use crate::harness::Bench;
use std::{future::Future, pin::Pin, sync::Arc};
use tidegate_core::Store;

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

    pub(crate) async fn close(self) {
        drop((self.store, self.reopen));
        if let Some(afterwards) = self.afterwards {
            afterwards.await;
        }
    }
}
