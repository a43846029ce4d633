//! The server as a process: start, idle, memory, containers.

mod bystanders;
mod container;
mod door;
mod scarcity;
mod start;
mod systemd;
