//! Reminders, which are told as they are, and routines, which are prompts.

use std::time::Duration;

use serde_json::json;

use super::schedule_request::{MOST_SNOOZE_MINUTES, ScheduleRequest};
use crate::model::fence::{is_of_sender, is_untrusted};
use crate::tools::definition::{
    Arguments, Change, Definition, ToolContext, required_text, text, texts,
};
use crate::tools::function::FunctionTool;
use crate::tools::wording::{Approver, Intent};
use base::calendar::{Cron, Timing, spoken_stamp};
use base::ids::ScheduleId;
use base::language::Words;
use base::people::folded;
use store::{NewSchedule, SCHEDULE_CHANNEL, Schedule, Trigger};

/// How long a reminder is put off where nothing else is said.
const SNOOZE: Duration = Duration::from_secs(600);

pub(super) fn schedule() -> FunctionTool {
    FunctionTool {
        definition: Definition::builtin(
            "schedule",
            "Reminders, timers, routines. create: say (told as is) or prompt (you get it then, answer \
             here); at or on. Else schedule_id from list; done, snooze (at): or the last told.",
            json!({
                "action": {
                    "type": "string",
                    "enum": ["create", "list", "cancel", "done", "snooze"],
                },
                "say": {"type": "string"},
                "prompt": {"type": "string"},
                "at": {
                    "type": "string",
                    "description": "Local: 2026-11-22T18:30, in 20 minutes, every other Friday",
                },
                "on": {
                    "type": "string",
                    "description": "list NAME, webhook NAME, event MINUTES CALENDAR",
                },
                "people": {"type": "array", "items": {"type": "string"}},
                "only_if_changed": {
                    "type": "array",
                    "items": {"type": "object"},
                    "description": "tool, arguments",
                },
                "webhook": {"type": "string"},
                "schedule_id": {"type": "string"},
            }),
            &["action"],
        )
        .for_readers(),
        intent,
        run,
    }
}

fn intent(arguments: &Arguments, approver: &Approver<'_>) -> Option<Intent> {
    let argument = |name| text(arguments, name);
    match argument("action")? {
        "list" => approver.intent("action.schedule.list", &[]),
        "done" => approver.intent("action.schedule.done", &[]),
        "snooze" => approver.intent("action.schedule.snooze", &[]),
        "cancel" => {
            let id = argument("schedule_id")?;
            let seen = approver.store.snapshot(approver.viewer);
            let known = seen.and_then(|seen| seen.schedules()).unwrap_or_default();
            match known.iter().find(|schedule| schedule.id.to_string() == id) {
                Some(one) => approver.intent("action.schedule.cancel", &[("prompt", &one.text)]),
                None => approver.intent("action.schedule.cancel_unseen", &[]),
            }
        }
        _ => {
            let when = match (argument("at"), argument("cron"), argument("on")) {
                (Some(at), ..) => spoken_stamp(at, approver.words),
                (None, Some(cron), _) => match cron.parse::<Cron>() {
                    Ok(cron) => cron.say(approver.words),
                    Err(_) => cron.to_owned(),
                },
                (None, None, on) => match on?.parse::<Trigger>() {
                    Ok(trigger) => when_triggered(approver.words, &trigger),
                    Err(_) => on?.to_owned(),
                },
            };
            let (key, prompt) = match argument("say") {
                Some(say) => ("action.schedule.say", say),
                None => ("action.schedule", argument("prompt")?),
            };
            let people = approver.words.list(&texts(arguments, "people"));
            let account = argument("webhook").unwrap_or_default();
            let key = match (people.as_str(), account) {
                ("", "") => key,
                ("", _) => "action.schedule.webhook",
                (_, "") => "action.schedule.people",
                _ => "action.schedule.people_and_webhook",
            };
            let fields = [
                ("when", when.as_str()),
                ("prompt", prompt),
                ("people", &people),
                ("account", account),
            ];
            approver.intent(key, &fields)
        }
    }
}

/// What a schedule waits for in place of a time, for people.
pub fn when_triggered(words: Words, trigger: &Trigger) -> String {
    match trigger {
        Trigger::List(name) => words.say("when.list", &[("name", name)]),
        Trigger::Webhook(name) => words.say("when.webhook", &[("name", name)]),
        Trigger::Event { minutes, calendar } => {
            let wait = words.count("when.minutes", minutes);
            let calendar = calendar.as_deref().unwrap_or_default();
            let key = match calendar {
                "" => "when.event",
                _ => "when.event_of",
            };
            words.say(key, &[("wait", &wait), ("name", calendar)])
        }
    }
}

fn run(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    match text(arguments, "action") {
        Some("create") => create(arguments, context),
        Some("list") => list(context),
        Some("cancel") => cancel(arguments, context),
        Some("done") => done(arguments, context),
        Some("snooze") => snooze(arguments, context),
        _ => Err("the argument \"action\" must be create, list, cancel, done or snooze".to_owned()),
    }
}

/// What is set up in a turn of a webhook or a linked sender stays with that account: its
/// replies go there, under its permissions, and what a webhook says comes from outside.
fn create(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let request = ScheduleRequest {
        say: text(arguments, "say"),
        prompt: text(arguments, "prompt"),
        at: text(arguments, "at"),
        cron: text(arguments, "cron"),
        on: text(arguments, "on"),
        people: &texts(arguments, "people"),
        only_if_changed: arguments.get("only_if_changed"),
    };
    let is_other = |name: &String| {
        let own = context.user_id.and(context.speaker);
        own.is_none_or(|own| folded(own) != folded(name))
    };
    if context.reminds_alone && request.people.iter().any(is_other) {
        return Err("no reminders for others are set here: leave out \"people\"".to_owned());
    }
    let named = text(arguments, "webhook");
    let account = match (context.account, named) {
        (Some(own), Some(other)) if own != other => {
            return Err(format!(
                "replies to here can go to the account {own:?} alone"
            ));
        }
        (own, named) => own.or(named),
    };
    if let Some(name) = named.filter(|name| context.account != Some(name)) {
        if context.is_narrowed {
            return Err(
                "this person's replies go to nobody else: leave out \"webhook\"".to_owned(),
            );
        }
        let person = context.user_id.and(context.speaker);
        context.config.account_seen_by(name, person)?;
    }
    let channel = match is_untrusted(context.channel) || is_of_sender(context.channel) {
        true => context.channel,
        false => SCHEDULE_CHANNEL,
    };
    let maker = NewSchedule {
        is_outside: context.is_outside,
        is_composed: true,
        owner: context.speaker.map(str::to_owned),
        owner_id: context.user_id,
        conversation_id: context.conversation_id,
        // Where there is none, whose is taken.
        audience: context.config.privacy.conversations.clone(),
        channel: channel.to_owned(),
        account: account.map(str::to_owned),
        most: context.config.limits.schedules_per_person,
        ..NewSchedule::new("", None)
    };
    let now = context.clock.now();
    let new = request.schedules(maker, context.config, context.store, now)?;
    let made = context.store.add_schedules(&context.viewer, new)?;
    let changes = made
        .iter()
        .map(|one| Change::Schedule(one.id, one.readers.clone()));
    context.changed(changes.collect());
    let ids: Vec<String> = made.iter().map(|one| one.id.to_string()).collect();
    let ids = ids.join(", ");
    let first = &made[0];
    Ok(match (&first.timing, &first.trigger) {
        (Some(timing), _) => {
            let next = (context.config.zone()).spoken(timing.next_at, now, Words::ENGLISH);
            match &timing.cron {
                Some(cron) => format!("Set as {ids}; it comes on {next}, then by {cron}."),
                None => format!("Set as {ids}; it comes on {next}."),
            }
        }
        (None, Some(trigger @ Trigger::Event { .. })) if first.owner_id == context.user_id => {
            format!("Set as {ids}; it comes on a change: {trigger}. No such event is known.")
        }
        (None, Some(trigger)) => format!("Set as {ids}; it comes on a change: {trigger}."),
        (None, None) => format!("Set as {ids}."),
    })
}

/// The reminder that is meant: by its id, or else the one of this person that was told last.
fn told(arguments: &Arguments, context: &ToolContext<'_>) -> Result<ScheduleId, String> {
    if let Some(id) = text(arguments, "schedule_id") {
        return Ok(id.parse()?);
    }
    let all = context.seen()?.schedules()?;
    let own = all.iter().filter(|one| {
        one.told_at.is_some() && one.owner_id == context.user_id && is_visible(one, context)
    });
    let latest = own.max_by_key(|one| one.told_at);
    latest
        .map(|one| one.id)
        .ok_or_else(|| "no reminder waits to be finished".to_owned())
}

fn done(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let id = told(arguments, context)?;
    let readers = context.store.finish_reminder(&context.viewer, id)?;
    context.changed(vec![Change::Schedule(id, readers)]);
    Ok("The reminder is finished.".to_owned())
}

fn snooze(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let id = told(arguments, context)?;
    let now = context.clock.now();
    let wait = match text(arguments, "at") {
        Some(at) => {
            let until = Timing::new(Some(at), None, &context.config.zone(), now);
            until?.next_at.since(now)
        }
        None => SNOOZE,
    };
    let wait = wait.min(Duration::from_secs(60 * MOST_SNOOZE_MINUTES));
    let again = context.store.snooze_reminder(&context.viewer, id, wait)?;
    context.changed(vec![
        Change::Schedule(id, again.readers.clone()),
        Change::Schedule(again.id, again.readers.clone()),
    ]);
    let next = again.timing.map(|timing| timing.next_at);
    let (zone, now) = (context.config.zone(), context.clock.now());
    let next = next.map(|next| zone.spoken(next, now, Words::ENGLISH));
    Ok(format!("It comes again on {}.", next.unwrap_or_default()))
}

fn list(context: &ToolContext<'_>) -> Result<String, String> {
    let mut listed = context.seen()?.schedules()?;
    listed.retain(|schedule| is_visible(schedule, context));
    let is_foreign = |schedule: &Schedule| schedule.is_outside || is_untrusted(&schedule.channel);
    if listed.is_empty() {
        return Ok("Nothing is scheduled.".to_owned());
    }
    context.shows_kept(listed.iter().any(is_foreign));
    let lines: Vec<String> = listed
        .iter()
        .map(|schedule| line(schedule, context))
        .collect();
    Ok(lines.join("\n"))
}

fn cancel(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let id: ScheduleId = required_text(arguments, "schedule_id")?.parse()?;
    let schedule = context.seen()?.schedule(id)?;
    if !is_visible(&schedule, context) {
        return Err(format!("there is no schedule {id}"));
    }
    let readers = context.store.delete_schedule(&context.viewer, id)?;
    context.changed(vec![Change::Schedule(id, readers)]);
    Ok(format!("Cancelled {id}."))
}

/// A webhook's callers see what was set up through it alone. The household sees all
/// that the readers of the conversation may see.
fn is_visible(schedule: &Schedule, context: &ToolContext<'_>) -> bool {
    !is_untrusted(context.channel) || schedule.channel == context.channel
}

fn line(schedule: &Schedule, context: &ToolContext<'_>) -> String {
    let zone = context.config.zone();
    let when = match (&schedule.timing, &schedule.trigger) {
        (_, Some(trigger)) => format!("on {trigger}"),
        (Some(timing), None) => {
            let cron = timing.cron.as_ref();
            let cron = cron.map_or(String::new(), |cron| format!(", cron {cron}"));
            format!("{}{cron}", zone.minute(timing.next_at))
        }
        (None, None) if schedule.is_said => "told".to_owned(),
        (None, None) => "over".to_owned(),
    };
    let paused = if schedule.is_paused { ", paused" } else { "" };
    let last = match &schedule.last_run {
        Some(run) => format!(", last run {}: {}", zone.minute(run.at), run.outcome),
        None => String::new(),
    };
    format!("{} ({when}{paused}{last}): {}", schedule.id, schedule.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Origin;
    use crate::tools::testing::Household;
    use base::testing::rows;

    #[test]
    fn a_schedule_is_set_listed_and_cancelled() {
        let mut household = Household::new();
        household.conversation_id = household.say("hello");
        let run = |arguments| household.run("schedule", arguments);
        let nothing = run(json!({"action": "list"})).unwrap();
        assert_eq!(nothing, "Nothing is scheduled.");
        let set =
            run(json!({"action": "create", "prompt": "Water the plants", "cron": "0 8 * * *"}));
        let set = set.unwrap();
        let id = set
            .strip_prefix("Set as ")
            .unwrap()
            .split(';')
            .next()
            .unwrap();
        assert!(
            set.contains("day, ") && set.ends_with(", 08:00, then by 0 8 * * *."),
            "{set}"
        );
        let listed = run(json!({"action": "list"})).unwrap();
        assert!(listed.starts_with(&format!("{id} (2")), "{listed}");
        assert!(
            listed.ends_with(" 08:00, cron 0 8 * * *): Water the plants"),
            "{listed}"
        );
        let cancelled = run(json!({"action": "cancel", "schedule_id": id}));
        assert_eq!(cancelled.unwrap(), format!("Cancelled {id}."));
        let again = run(json!({"action": "cancel", "schedule_id": id}));
        assert!(again.unwrap_err().contains("there is no schedule"));
        run(json!({"action": "create", "prompt": "Bins", "at": "+20m"})).unwrap();
        let listed = run(json!({"action": "list"})).unwrap();
        assert!(
            listed.ends_with("): Bins") && !listed.contains("cron"),
            "{listed}"
        );
    }

    #[test]
    fn what_cannot_be_meant_is_explained() {
        let mut household = Household::new();
        household.conversation_id = household.say("hello");
        let table = r#"
            {"action": "wait"}                                           | create
            {"action": "create", "at": "+1m"}                            | give either "say"
            {"action": "create", "prompt": "x"}                          | give either
            {"action": "create", "prompt": "x", "cron": "61 * * * *"}    | the minute of "cron"
            {"action": "create", "prompt": "x", "at": "2020-01-01T00:00"} | is in the past
            {"action": "create", "prompt": "x", "at": "+1m", "webhook": "ci"} | there is no webhook account "ci"
            {"action": "cancel", "schedule_id": "bins"}                  | there is no schedule
        "#;
        for [arguments, problem] in rows(table) {
            let arguments: serde_json::Value = arguments.parse().unwrap();
            let error = household.run("schedule", arguments).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn an_event_that_nobody_knows_is_said_to_be_unknown() {
        let mut household = Household::new();
        household.conversation_id = household.say("hello");
        for (on, is_unknown) in [("event 10 nonsense", true), ("list shop", false)] {
            let create = json!({"action": "create", "say": "Go", "on": on});
            let set = household.run("schedule", create).unwrap();
            assert!(set.contains(&format!("on a change: {on}.")), "{set}");
            assert_eq!(set.contains("No such event is known."), is_unknown, "{set}");
        }
    }

    #[test]
    fn whoever_is_narrowed_gets_their_own_replies_alone() {
        let mut household = Household::new();
        household.is_narrowed = true;
        let mut create = json!({"action": "create", "prompt": "x", "at": "+20m"});
        household.run("schedule", create.clone()).unwrap();
        create["webhook"] = json!("ci");
        let refused = household.run("schedule", create.clone()).unwrap_err();
        assert!(refused.contains("go to nobody else"), "{refused}");
        // In a turn of that account they go there in any case.
        household.channel = "webhook:ci";
        household.run("schedule", create).unwrap();
    }

    #[test]
    fn what_a_webhook_sets_up_stays_with_its_account() {
        let mut household = Household::new();
        household.conversation_id = household.say("hello");
        let create = |prompt| json!({"action": "create", "prompt": prompt, "at": "+20m"});
        household
            .run("schedule", create("of the household"))
            .unwrap();
        household.channel = "webhook:ci";
        let mut elsewhere = create("x");
        elsewhere["webhook"] = json!("other");
        let refused = household.run("schedule", elsewhere).unwrap_err();
        assert!(refused.contains("the account \"ci\" alone"), "{refused}");
        household.run("schedule", create("of the account")).unwrap();
        let seen = household
            .run("schedule", json!({"action": "list"}))
            .unwrap();
        assert!(seen.ends_with("): of the account"), "{seen}");
        assert_eq!(seen.lines().count(), 1);
        household.channel = "websocket";
        let all = household
            .run("schedule", json!({"action": "list"}))
            .unwrap();
        assert_eq!(all.lines().count(), 2, "{all}");
        let foreign = all.lines().find(|line| line.contains("household")).unwrap();
        household.channel = "webhook:ci";
        let id = foreign.split(' ').next().unwrap();
        let cancel = json!({"action": "cancel", "schedule_id": id});
        assert!(household.run("schedule", cancel).is_err());
    }

    #[test]
    fn only_what_people_wrote_is_marked_as_theirs() {
        let household = Household::new();
        for (tool, arguments, origin) in [
            ("schedule", json!({"action": "list"}), Origin::Tool),
            (
                "schedule",
                json!({"action": "create", "prompt": "Bins"}),
                Origin::Tool,
            ),
            (
                "schedule",
                json!({"action": "create", "prompt": "Bins", "at": "soon"}),
                Origin::Tool,
            ),
            (
                "schedule",
                json!({"action": "create", "prompt": "Bins", "at": "+20m"}),
                Origin::Tool,
            ),
            ("schedule", json!({"action": "list"}), Origin::Trusted),
            (
                "schedule",
                json!({"action": "cancel", "schedule_id": "x"}),
                Origin::Tool,
            ),
            ("lists", json!({"action": "show"}), Origin::Tool),
            (
                "lists",
                json!({"action": "add", "list": "shop", "items": ["milk"]}),
                Origin::Trusted,
            ),
            (
                "lists",
                json!({"action": "add", "list": "shop"}),
                Origin::Tool,
            ),
            ("recall", json!({"query": "tea"}), Origin::Tool),
            (
                "search_conversations",
                json!({"query": "hello"}),
                Origin::Trusted,
            ),
        ] {
            let found = household.origin_of(tool, arguments.clone());
            assert_eq!(found, origin, "{tool} {arguments}");
        }
    }
}
