//! The figures, by family.

mod build;
mod commands;
mod connections;
mod health;
mod history;
mod memory;
mod pages;
mod programs;
mod prompt_cache;
mod recall;
#[cfg(feature = "relay")]
mod relay;
mod request;
mod start;
mod streams;
mod turns;
mod wear;
mod webhooks;

use crate::table::Table;

/// Figures that are measured together.
pub struct Family {
    /// What chooses it on the command line.
    pub name: &'static str,
    pub title: &'static str,
    pub measure: fn(&mut Table),
}

/// In the order of the table.
pub const FAMILIES: &[Family] = &[
    Family {
        name: "start",
        title: "Starting and idling",
        measure: start::measure,
    },
    Family {
        name: "connections",
        title: "Idle WebSocket connections",
        measure: connections::measure,
    },
    Family {
        name: "memory",
        title: "Memory after a crowd",
        measure: memory::measure,
    },
    Family {
        name: "health",
        title: "GET /health",
        measure: health::measure,
    },
    Family {
        name: "commands",
        title: "Commands over WebSocket",
        measure: commands::measure,
    },
    Family {
        name: "request",
        title: "What a model is sent",
        measure: request::measure,
    },
    Family {
        name: "cache",
        title: "What providers cache",
        measure: prompt_cache::measure,
    },
    Family {
        name: "pages",
        title: "What is found on saved web pages",
        measure: pages::measure,
    },
    Family {
        name: "turns",
        title: "Chat turns, durable, instant model",
        measure: turns::measure,
    },
    Family {
        name: "streams",
        title: "Streamed replies and tools",
        measure: streams::measure,
    },
    Family {
        name: "programs",
        title: "Programs made for OpenAI",
        measure: programs::measure,
    },
    Family {
        name: "webhooks",
        title: "Webhooks, durable",
        measure: webhooks::measure,
    },
    Family {
        name: "history",
        title: "A long history",
        measure: history::measure,
    },
    Family {
        name: "recall",
        title: "Memories that a message needs",
        measure: recall::measure,
    },
    #[cfg(feature = "relay")]
    Family {
        name: "relay",
        title: "A relay",
        measure: relay::measure,
    },
    Family {
        name: "wear",
        title: "Bytes written, for those who live on an SD card",
        measure: wear::measure,
    },
    Family {
        name: "build",
        title: "Clean release build",
        measure: build::measure,
    },
];
