//! HTTP routes: authentication, machine registration, health.
