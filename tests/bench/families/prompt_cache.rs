//! How much of a long conversation's input providers read from their cache.

use support::prompt_cache::{Rules, play};

use crate::table::{Figure, Table};

const TURNS: usize = 1_500;

pub fn measure(table: &mut Table) {
    for (rules, name) in [(Rules::Anthropic, "Anthropic"), (Rules::OpenAi, "OpenAI")] {
        let share = play(rules, TURNS);
        table.add(
            Figure::new(
                format!("input read from the cache, {name}'s rules"),
                share.percent(),
                "%",
            )
            .at_least(95.0)
            .how(format!(
                "{TURNS} turns with memories, tools, summaries, a restart and a change of model"
            )),
        );
    }
}
