//! Commands of docs/dynamodb.md.
