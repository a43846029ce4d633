//! Which tools a model is shown where all of them take too much of its window, and the tool
//! that finds the others.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::definition::{Arguments, Definition, Source, Tool, ToolContext, required_text};
use super::toolbox::Toolbox;
use crate::model::ToolSpec;
use crate::model::estimate::tool_tokens;
use base::error::Result;
use config::FIND_TOOLS;

/// The share of a window that tools take at most, and what those take besides that were found
/// in a conversation: one of so many parts.
const SHARE: usize = 4;
const FOUND_SHARE: usize = 8;
/// Most tools that one search finds.
const MOST_FOUND: usize = 5;
/// Letters of a word that say which it is.
const STEM: usize = 4;
/// Most names that the answer to a search without success lists.
const MOST_NAMES: usize = 100;

/// The tools of a conversation. What it shows first stays the same, so that services read
/// it from their caches.
#[derive(Default)]
pub struct Offer {
    /// Shown with every request.
    shown: Vec<ToolSpec>,
    /// Those of a program, which has no use for a request without them.
    own: Vec<ToolSpec>,
    find: Option<Arc<FindTools>>,
    /// Most tokens of those that were found.
    found_tokens: usize,
}

impl Offer {
    /// Of the tools that are `offered`, those that go with requests to a model with this
    /// window, beside a program's `own`: all, or the `used` ones, the most used first, and
    /// then the others in their order.
    ///
    /// # Errors
    /// Those of `used`.
    pub fn new(
        mut offered: Vec<ToolSpec>,
        own: &[ToolSpec],
        toolbox: &Toolbox,
        window: usize,
        used: impl FnOnce() -> Result<Vec<String>>,
    ) -> Result<Offer> {
        offered.retain(|tool| !own.iter().any(|one| one.name == tool.name));
        let mut room = (window / SHARE).saturating_sub(tool_tokens(own));
        let own = own.to_vec();
        if tool_tokens(&offered) <= room {
            return Ok(Offer {
                shown: offered,
                own,
                ..Offer::default()
            });
        }
        let largest = FindTools::new(offered.clone(), toolbox);
        room = room.saturating_sub(tool_tokens(std::slice::from_ref(&largest.definition.spec)));
        let used = used()?;
        let place = |tool: &ToolSpec| used.iter().position(|name| *name == tool.name);
        let mut by_use: Vec<&ToolSpec> = offered.iter().collect();
        by_use.sort_by_key(|tool| place(tool).unwrap_or(usize::MAX));
        let mut chosen = BTreeSet::new();
        for tool in by_use {
            let tokens = tool_tokens(std::slice::from_ref(tool));
            if tokens <= room {
                room -= tokens;
                chosen.insert(tool.name.clone());
            }
        }
        let is_chosen = |tool: &ToolSpec| chosen.contains(&tool.name);
        let (shown, hidden) = offered.into_iter().partition(is_chosen);
        Ok(Offer {
            shown,
            own,
            find: Some(Arc::new(FindTools::new(hidden, toolbox))),
            found_tokens: window / FOUND_SHARE,
        })
    }

    /// What a request shows after these searches of the conversation, the oldest first: what
    /// they found stands at the end, as long as there is room for it.
    pub fn after<'q>(&self, queries: impl Iterator<Item = &'q str>) -> Vec<ToolSpec> {
        let mut found: Vec<&ToolSpec> = Vec::new();
        if let Some(find) = &self.find {
            for tool in queries.flat_map(|query| find.search(query)) {
                if !found.iter().any(|known| known.name == tool.name) {
                    found.push(tool);
                }
            }
        }
        let mut found: Vec<ToolSpec> = found.into_iter().cloned().collect();
        while tool_tokens(&found) > self.found_tokens {
            found.remove(0);
        }
        let find = self.find.iter().map(|find| &find.definition.spec);
        let first = self.shown.iter().chain(find).chain(&self.own);
        first.cloned().chain(found).collect()
    }

    /// The tool that finds those that are not shown, if there are any.
    pub fn find(&self) -> Option<Arc<dyn Tool>> {
        self.find.clone().map(|find| find as Arc<dyn Tool>)
    }

    /// The names of the tools that are not shown.
    pub fn left_out(&self) -> impl Iterator<Item = &str> {
        let hidden = self.find.iter().flat_map(|find| &find.hidden);
        hidden.map(|tool| tool.name.as_str())
    }
}

/// Finds tools that whoever asks may use and that are not shown.
struct FindTools {
    definition: Definition,
    hidden: Vec<ToolSpec>,
}

impl FindTools {
    fn new(hidden: Vec<ToolSpec>, toolbox: &Toolbox) -> FindTools {
        let mut servers: Vec<&str> = Vec::new();
        for tool in hidden.iter().filter_map(|tool| toolbox.get(&tool.name)) {
            if let Source::Mcp(server) = &tool.definition().source
                && !servers.contains(&server.as_str())
            {
                servers.push(server);
            }
        }
        let of = match servers.is_empty() {
            true => String::new(),
            false => format!(", of {} among others", servers.join(", ")),
        };
        let description = format!(
            "There are {} more tools than are listed here{of}. Find some by what they do; then \
             they are listed, too.",
            hidden.len()
        );
        let properties = json!({"query": {"type": "string", "description": "A few words"}});
        FindTools {
            definition: Definition::builtin(FIND_TOOLS, &description, properties, &["query"])
                .read_only(),
            hidden,
        }
    }

    /// Those that have most of the words in their names and descriptions, the best first.
    fn search(&self, query: &str) -> Vec<&ToolSpec> {
        let asked = stems(query);
        let texts: Vec<BTreeSet<String>> = (self.hidden.iter())
            .map(|tool| {
                stems(&format!(
                    "{} {} {}",
                    tool.name, tool.description, *tool.parameters
                ))
            })
            .collect();
        let rarity = |word: &String| {
            let having = texts.iter().filter(|text| text.contains(word)).count();
            1.0 / having.max(1) as f64
        };
        let weights: Vec<(&String, f64)> = asked.iter().map(|word| (word, rarity(word))).collect();
        let score = |place: usize| -> f64 {
            let has = weights
                .iter()
                .filter(|(word, _)| texts[place].contains(*word));
            has.map(|(_, weight)| weight).sum()
        };
        let scores = (0..self.hidden.len()).map(|place| (score(place), place));
        let mut found: Vec<(f64, usize)> = scores.filter(|(score, _)| *score > 0.0).collect();
        found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let best = found.first().map_or(0.0, |(score, _)| *score);
        found.retain(|(score, _)| *score >= best / 2.0);
        found.truncate(MOST_FOUND);
        found
            .into_iter()
            .map(|(_, place)| &self.hidden[place])
            .collect()
    }
}

/// The words of a text, each by its beginning.
fn stems(text: &str) -> BTreeSet<String> {
    let words = text.split(|character: char| !character.is_alphanumeric());
    let words = words.filter(|word| word.chars().nth(1).is_some());
    let stem = |word: &str| word.chars().take(STEM).collect::<String>().to_lowercase();
    words.map(stem).collect()
}

impl Tool for FindTools {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Names alone: what a server says of its tools stands in their descriptions.
    fn run(
        &self,
        arguments: &Arguments,
        _: &ToolContext<'_>,
    ) -> std::result::Result<String, String> {
        let names = |tools: &[&ToolSpec]| {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            names.join(", ")
        };
        let found = self.search(required_text(arguments, "query")?);
        if found.is_empty() {
            let all: Vec<&ToolSpec> = self.hidden.iter().take(MOST_NAMES).collect();
            return Ok(format!(
                "No tool fits. Those that are not listed are called {}: search with a word of \
                 these.",
                names(&all)
            ));
        }
        Ok(format!("Listed from now on: {}.", names(&found)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, description: &str) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: json!({"type": "object", "properties": {}}).into(),
        }
    }

    fn many() -> Vec<ToolSpec> {
        let long = "Does something with what it is given. ".repeat(4);
        let numbers = (0..56).map(|number| spec(&format!("tool_{number}"), &long));
        let rain = spec("mcp_sky_forecast", "Whether it is going to rain in a town.");
        numbers.chain([rain]).collect()
    }

    fn offer(window: usize, used: &[&str]) -> Offer {
        let used = used.iter().map(|name| (*name).to_owned()).collect();
        Offer::new(many(), &[], &Toolbox::default(), window, || Ok(used)).unwrap()
    }

    fn names(tools: &[ToolSpec]) -> Vec<&str> {
        tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    #[test]
    fn tools_take_a_quarter_of_the_window_and_the_most_used_come_first() {
        for window in [4_096, 8_192] {
            let shown = offer(window, &["tool_50", "gone", "tool_49"]).after([].into_iter());
            let tokens = tool_tokens(&shown);
            assert!(tokens <= window / 4 && tokens > window / 5, "{tokens}");
            // In their order, whichever is used more.
            let names = names(&shown);
            assert_eq!((names[0], names.last()), ("tool_0", Some(&FIND_TOOLS)));
            let is_of_end = |name: &&&str| ["tool_48", "tool_49", "tool_50"].contains(*name);
            let end: Vec<&&str> = names.iter().filter(is_of_end).collect();
            assert_eq!(end, [&"tool_49", &"tool_50"]);
        }
        let all = offer(32_768, &[]);
        assert!(all.find().is_none() && all.left_out().next().is_none());
        assert_eq!(all.after(["rain"].into_iter()).len(), 57);
    }

    #[test]
    fn what_is_found_comes_last_and_stays() {
        let offer = offer(8_192, &[]);
        let before = offer.after([].into_iter());
        assert!(offer.left_out().any(|name| name == "mcp_sky_forecast"));
        let found = offer.after(["will it rain?"].into_iter());
        assert_eq!(found[..before.len()], before[..]);
        assert_eq!(names(&found[before.len()..]), ["mcp_sky_forecast"]);
        let more = offer.after(["will it rain?", "tool_55", "raining"].into_iter());
        assert_eq!(more[..found.len()], found[..]);
        // They have bounds, too.
        let queries: Vec<String> = (20..56).map(|number| format!("tool_{number}")).collect();
        let many = offer.after(queries.iter().map(String::as_str));
        assert!(tool_tokens(&many) <= 8_192 / 4 + 8_192 / 8);
        assert_eq!(many.last().unwrap().name, "tool_55");
    }

    #[test]
    fn a_program_keeps_its_own_tools() {
        let own = [spec("tool_0", "Of the program.")];
        let offer = Offer::new(many(), &own, &Toolbox::default(), 4_096, || Ok(Vec::new()));
        let shown = offer.unwrap().after([].into_iter());
        let same: Vec<&ToolSpec> = shown.iter().filter(|tool| tool.name == "tool_0").collect();
        assert_eq!(same, [&own[0]]);
    }

    #[test]
    fn an_answer_names_tools_and_nothing_else() {
        let household = crate::tools::testing::Household::new();
        let find = offer(8_192, &[]).find().unwrap();
        let run = |query: &str| household.run_tool(find.as_ref(), json!({ "query": query }));
        let found = run("rain").unwrap();
        assert_eq!(found, "Listed from now on: mcp_sky_forecast.");
        let none = run("bicycle").unwrap();
        assert!(
            none.starts_with("No tool fits. ") && none.contains("forecast"),
            "{none}"
        );
    }
}
