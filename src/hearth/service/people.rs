//! Who may sign in, and with which tokens.

#[cfg(test)]
mod tests;

use std::time::Duration;

use serde_json::Value;

use super::views::{self, HOUSEHOLD};
use super::{Service, password};
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{ConversationId, TokenId, UserId};
use base::language::Said;
use base::people::{NAME_CHARACTERS, is_user_name, refused_display_name, reserved_name};
use base::secret::{Secret, fingerprint};
use base::sync::lock;
use protocol::command::{
    AddUser, CreateToken, GetUsage, RemoveUser, SetDisplayName, SetLimits, SetPassword, SetRole,
};
use protocol::record;
use serde_json::json;
use store::{
    ExportedConversation, ExportedMessage, Identity, NewToken, OF_PROGRAM, Period, Readers, Role,
    SESSION, Token, TokenScope, UsageBy, UsageRow, User, UserRole, Viewer,
};

/// The channel of conversations in which Hearth itself tells a person something.
const NOTICE_CHANNEL: &str = "notice";

/// How long a session of the terminal on this machine is valid if it does not end before.
const LOCAL_SESSION: Duration = Duration::from_secs(60 * 60);

/// Checks the name of a new user.
///
/// # Errors
/// `invalid_request`.
pub fn check_user_name(name: &str) -> Result<()> {
    if is_user_name(name) {
        return Ok(());
    }
    if let Some(reserved) = reserved_name(name) {
        return Err(Error::refused(
            "error.called.reserved",
            &[("name", reserved)],
        ));
    }
    let most = NAME_CHARACTERS.to_string();
    Err(Error::refused("error.user_name", &[("most", &most)]))
}

/// Checks what a person is to be called.
fn check_display_name(name: &str) -> Result<()> {
    match refused_display_name(name) {
        Some(refused) => Err(Error::invalid_request(refused)),
        None => Ok(()),
    }
}

/// What a new API token is asked for beside its owner.
#[derive(Debug, Default)]
pub struct TokenRequest {
    /// What it is for.
    pub name: String,
    /// The owner's, or the most that a narrowed token may have, when absent.
    pub role: Option<UserRole>,
    /// Absent if it is valid until it is revoked.
    pub expires_at: Option<Timestamp>,
    /// How it is narrowed beyond its role.
    pub scope: TokenScope,
    /// The people beside its owner in whose name it may ask.
    pub speaks_for: Vec<UserId>,
}

/// A new API token of `owner`, as it is shown once and as it is stored.
///
/// # Errors
/// `invalid_request` for its name, its tools, or a role above the owner's or above what a
/// narrowed token may have.
pub fn new_token(owner: &User, request: TokenRequest) -> Result<(Secret, NewToken)> {
    let name = &request.name;
    let fits = (1..=NAME_CHARACTERS).contains(&name.chars().count());
    if !fits || name.trim().is_empty() || name.contains(char::is_control) || name == SESSION {
        return Err(Error::invalid_request(format!(
            "a token's name must have 1 to {NAME_CHARACTERS} characters, and must not be {SESSION:?}"
        )));
    }
    let mut tools = request.scope.tools.iter().flat_map(|tools| tools.iter());
    if let Some(tool) = tools.find(|tool| tool.is_empty() || tool.contains([',', ' '])) {
        return Err(Error::invalid_request(format!("there is no tool {tool:?}")));
    }
    let is_narrow = request.scope.is_narrow() || !request.speaks_for.is_empty();
    let most = match is_narrow {
        // An admin could make another token, which is not.
        true => owner.role.min(UserRole::User),
        false => owner.role,
    };
    let role = request.role.unwrap_or(most);
    if role > owner.role {
        return Err(Error::invalid_request(format!(
            "{} is {} and cannot have a token that is {}",
            owner.name,
            owner.role.as_str(),
            role.as_str()
        )));
    }
    if role > most {
        return Err(Error::invalid_request(
            "a token with \"tools\", \"only\" or \"speaks_for\" cannot be admin",
        ));
    }
    let secret = Secret::random_token();
    let token = NewToken {
        user_id: owner.id,
        fingerprint: fingerprint(secret.expose()),
        role,
        name: request.name,
        expires_at: request.expires_at,
        scope: request.scope,
        speaks_for: request.speaks_for,
    };
    Ok((secret, token))
}

/// How a token is narrowed, as a request or the command line says.
///
/// # Errors
/// `invalid_request` for an `only` that is not `household`.
pub fn token_scope(tools: Option<Vec<String>>, only: Option<&str>) -> Result<TokenScope> {
    match only {
        None | Some(HOUSEHOLD) => Ok(TokenScope {
            tools: tools.map(Into::into),
            household_only: only.is_some(),
        }),
        Some(_) => Err(Error::invalid_request("\"only\" must be \"household\"")),
    }
}

/// The commands of the admin `by`. Passwords and tokens are not logged.
impl Service {
    pub(super) fn list_users(&self) -> Result<Value> {
        let users = self.store.users()?;
        let users = users.iter().map(|user| self.person(user));
        Ok(views::records("users", users))
    }

    /// The people whom the viewer may know, and what they are called.
    pub(super) fn list_people(&self, viewer: &Viewer) -> Result<Value> {
        let people = self.store.snapshot(viewer)?.people()?.into_iter();
        let people = people.map(|person| record::Called {
            display_name: person.called().to_owned(),
            name: person.name,
            role: person.role.as_str(),
        });
        Ok(views::records("people", people))
    }

    /// Sets what a person is called: the caller, or as an admin anybody.
    pub(super) fn set_display_name(&self, new: &SetDisplayName, by: &Identity) -> Result<Value> {
        let person = self.find_user(new.name.as_deref().unwrap_or(&by.user))?;
        if by.is_narrowed {
            return Err(Error::unauthorized(Said::of("error.narrowed_renames", &[])));
        }
        if person.id != by.user_id && by.role < UserRole::Admin {
            return Err(Error::unauthorized(Said::of("error.admin_renames", &[])));
        }
        let wanted = Some(new.display_name.as_str()).filter(|name| !name.is_empty());
        wanted.map_or(Ok(()), check_display_name)?;
        let named = self.store.set_display_name(person.id, wanted)?;
        log::info!("user {}: display name set by {}", named.name, by.user);
        self.hub.publish_name(named.id, named.role);
        self.hub.publish_people();
        Ok(json!(self.person(&named)))
    }

    /// Gives a person who has just been added a display name, which was checked before.
    pub(super) fn call(&self, id: UserId, display_name: Option<&str>) -> Result<()> {
        if display_name.is_some() {
            let named = self.store.set_display_name(id, display_name)?;
            self.hub.publish_name(named.id, named.role);
        }
        Ok(())
    }

    /// Checks the display name of a person who is about to be added.
    pub(super) fn check_new_display_name(&self, display_name: Option<&str>) -> Result<()> {
        let Some(name) = display_name else {
            return Ok(());
        };
        check_display_name(name)?;
        self.store.check_is_free(name, true)
    }

    pub(super) fn add_user(&self, new: AddUser, by: &str) -> Result<Value> {
        check_user_name(&new.name)?;
        let display_name = new.display_name.as_deref();
        self.check_new_display_name(display_name)?;
        let role = parse_role(new.role)?.unwrap_or(UserRole::User);
        let hash = match (&new.password, new.program) {
            (Some(password), false) => self.hash_password(password)?,
            (None, true) if !new.child => OF_PROGRAM.to_owned(),
            (None, false) => {
                return Err(Error::invalid_request(
                    "\"password\" is required and must be a string, unless \"program\" is true",
                ));
            }
            (_, true) => {
                return Err(Error::invalid_request(
                    "a program has neither a password nor the limits of a child",
                ));
            }
        };
        self.finish_removals();
        if new.child {
            self.narrow_child(&new.name)?;
        }
        let mut added = self.store.add_user(&new.name, role, &hash)?;
        self.call(added.id, display_name)?;
        added.display_name = new.display_name;
        log::info!("user {}: added as {} by {by}", added.name, role.as_str());
        self.hub.publish_people();
        Ok(json!(self.person(&added)))
    }

    pub(super) fn set_password(&self, new: SetPassword, by: &str) -> Result<Value> {
        let known = self.find_person(&new.name)?;
        let hash = self.hash_password(&new.password)?;
        self.store.set_password(known.id, &hash, None)?;
        log::info!("user {}: password set by {by}", known.name);
        self.hub.publish_people();
        Ok(json!(self.person(&known)))
    }

    pub(super) fn set_role(&self, new: &SetRole, by: &str) -> Result<Value> {
        let known = self.find_user(&new.name)?;
        let role = UserRole::parse(&new.role).ok_or_else(not_a_role)?;
        if known.role != role {
            if known.role == UserRole::Admin {
                // What they allowed themselves, before the role goes: nothing may fail between.
                self.store.check_not_the_last_admin(known.id)?;
                if self.settings.end_permissions_of(&known.name)? {
                    self.config_changed(&["people".to_owned()]);
                }
            }
            self.store.set_role(known.id, role)?;
            log::info!("user {}: made {} by {by}", known.name, role.as_str());
            self.end_lost_questions();
            self.hub.publish_people();
        }
        let mut view = self.person(&User {
            role,
            ..known.clone()
        });
        view.was = Some(known.role.as_str());
        Ok(json!(view))
    }

    pub(super) fn set_limits(&self, new: SetLimits, by: &Identity) -> Result<Value> {
        let known = self.find_user(&new.name)?;
        let before = self.settings.current();
        self.settings.limit_person(&known.name, new.limits)?;
        log::info!("user {}: limits changed by {}", known.name, by.user);
        self.config_changed(&["people".to_owned()]);
        self.tell_of_phones(&before, by);
        self.hub.publish_people();
        Ok(json!(self.person(&known)))
    }

    pub(super) fn belongings(&self, name: &str) -> Result<Value> {
        let known = self.find_user(name)?;
        Ok(json!(self.store.belongings(&known)?))
    }

    /// A session of a person, or of the first admin, for the terminal on this machine.
    pub(super) fn create_session(&self, name: Option<&str>) -> Result<Value> {
        let user = match name {
            Some(name) => self.find_user(name)?,
            None => self.first_admin()?.ok_or_else(|| {
                Error::not_found(
                    "there is no admin yet; add one with `hearth user add NAME --role admin`",
                )
            })?,
        };
        let (token, session) = self.new_session(&user, LOCAL_SESSION);
        self.store.add_token(session)?;
        Ok(json!({
            "user": user.name,
            "token": token.expose(),
            "expires_in": LOCAL_SESSION.as_secs(),
        }))
    }

    pub(super) fn usage(&self, get: &GetUsage) -> Result<Value> {
        let (period, by) = match get.by.as_deref() {
            None | Some("month") => (Period::Month, UsageBy::Period),
            Some("day") => (Period::Day, UsageBy::Period),
            Some("purpose") => (Period::Month, UsageBy::Purpose),
            Some(_) => {
                let why = "\"by\" must be day, month or purpose";
                return Err(Error::invalid_request(why));
            }
        };
        let config = self.settings.current();
        let rows = self.store.usage(period, by, get.limit)?;
        let row = |row: UsageRow| {
            let is_day = period == Period::Day;
            record::UsageRow {
                day: is_day.then(|| row.period.clone()),
                month: (!is_day).then_some(row.period),
                person: row.person,
                purpose: row.purpose,
                cost: config.price_of(&row.model).map(|price| {
                    let used = row.usage;
                    format!("{:.4}", price.of(used.input, used.cached, used.output))
                }),
                model: row.model,
                turns: row.turns,
                tokens: views::tokens(row.usage),
            }
        };
        Ok(json!(record::Usage {
            usage: rows.into_iter().map(row).collect(),
            budget: record::Budget {
                monthly_tokens: self.settings.current().budget.monthly_tokens,
                used_this_month: self.server_snapshot()?.tokens_of_month(self.clock.now())?,
            },
        }))
    }

    pub(super) fn remove_user(&self, remove: &RemoveUser, by: &Identity) -> Result<Value> {
        let known = self.find_user(&remove.name)?;
        let heir = remove.hand_over_to.as_deref();
        if heir.is_some() && by.role < UserRole::Owner {
            return Err(Error::unauthorized(
                "what is private to somebody is handed over on the machine itself, with `hearth \
                 user remove NAME --hand-over-to NAME`",
            ));
        }
        let heir = heir.map(|name| self.find_person(name)).transpose()?;
        let may_get = |heir: &User| heir.id != known.id && heir.role >= UserRole::User;
        if !heir.as_ref().is_none_or(may_get) {
            return Err(Error::invalid_request(
                "\"hand_over_to\" must name somebody else who is no guest",
            ));
        }
        let heir_id = heir.as_ref().map(|heir| heir.id);
        let removed = self.store.remove_user(known.id, heir_id)?;
        log::info!("user {}: removed by {}", known.name, by.user);
        self.person_gone(removed.unseen);
        for (conversation, before) in removed.handed_over {
            let shared = self.server_snapshot()?.conversation(conversation)?;
            self.publish_shared(before, shared, &by.user);
        }
        Ok(json!(record::Removal {
            had: removed.had,
            handed_over_to: heir.map(|heir| heir.name),
            name: known.name,
        }))
    }

    pub(super) fn list_tokens(&self, with_sessions: bool) -> Result<Value> {
        let tokens = self.store.tokens(with_sessions)?;
        let tokens = tokens.iter().map(|token| record::Token {
            names_nobody: self.programs.names_nobody(token.id),
            ..views::token(token)
        });
        Ok(views::records("tokens", tokens))
    }

    /// Makes a token: for the caller, or as an admin for a program. Whoever owns the machine
    /// makes one for anybody, and those whose things it reads are told.
    pub(super) fn create_token(&self, new: CreateToken, by: &Identity) -> Result<Value> {
        let owner = self.find_user(new.user.as_deref().unwrap_or(&by.user))?;
        let is_by_owner = by.role == UserRole::Owner;
        let is_own = owner.id == by.user_id || owner.is_program();
        if !is_by_owner && (!is_own || new.speaks_for.is_some()) {
            return Err(Error::unauthorized(
                "a token with which somebody else's things are read is made on the machine \
                 itself, with `hearth token create`",
            ));
        }
        if new.speaks_for.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::invalid_request(
                "\"speaks_for\" must name somebody: leave it out for a token of its owner alone",
            ));
        }
        let config = self.settings.current();
        let tools = new.tools.iter().flatten();
        let warnings: Vec<String> = tools.filter_map(|tool| config.unknown_tool(tool)).collect();
        let expires_at = new.expires_in.map(|time| self.clock.now().plus(time));
        let names = new.speaks_for.unwrap_or_default();
        let spoken_for = names.iter().map(|name| self.find_user(name));
        let spoken_for = spoken_for.collect::<Result<Vec<User>>>()?;
        let request = TokenRequest {
            name: new.name,
            role: parse_role(new.role)?,
            expires_at,
            scope: token_scope(new.tools, new.only.as_deref())?,
            speaks_for: spoken_for.iter().map(|person| person.id).collect(),
        };
        let (secret, stored) = new_token(&owner, request)?;
        let made = self.store.add_token(stored)?;
        log::info!("{} of {}: made by {}", made.id, owner.name, by.user);
        if is_by_owner {
            for person in spoken_for.iter().chain([&owner]) {
                self.tell_of_token(person, &made)?;
            }
        }
        self.hub.publish_people();
        let mut shown = views::token(&made);
        shown.token = Some(secret.expose().to_owned());
        shown.warnings = warnings;
        Ok(json!(shown))
    }

    pub(super) fn revoke_token(&self, id: TokenId, by: &str) -> Result<Value> {
        self.store.revoke_token(id)?;
        log::info!("{id}: revoked by {by}");
        self.hub.publish_people();
        Ok(json!({ "token_id": id }))
    }

    /// Tells a person that a token was made with which their things are read, before anybody
    /// has it: in a conversation of their own, and on their phones.
    fn tell_of_token(&self, person: &User, token: &Token) -> Result<()> {
        if person.is_program() {
            return Ok(());
        }
        let name = &token.name;
        let text = format!(
            "A token named {name:?} was made on the machine. With it a program of {} sees what you \
             see and asks in your name. Your account lists it ({}) and can end it.",
            token.user, token.id
        );
        let source = format!("notice:{}:{}", token.id, person.id);
        self.tell(person, "A token that reads your things", &text, &source)
    }

    /// Tells a person something in a conversation of their own, and on their phones; once for
    /// each `source`.
    pub(super) fn tell(&self, person: &User, title: &str, text: &str, source: &str) -> Result<()> {
        let now = self.clock.now();
        let notice = ExportedConversation {
            channel: Some(NOTICE_CHANNEL.to_owned()),
            outside: Some(false),
            ..ExportedConversation::new(title.to_owned(), now)
        };
        let message = ExportedMessage::new(Role::Assistant, text.to_owned(), now);
        let added = (self.store).add_notice(source, notice, message, person.id)?;
        let Some((conversation, readers)) = added else {
            return Ok(());
        };
        self.hub.publish_change(conversation, readers);
        self.notify(person, conversation, text)
    }

    fn person(&self, user: &User) -> record::Person {
        views::person(user, self.settings.current().person(&user.name))
    }

    /// Whoever is an admin, the first by name.
    pub(super) fn first_admin(&self) -> Result<Option<User>> {
        let mut users = self.store.users()?.into_iter();
        Ok(users.find(|user| user.role == UserRole::Admin))
    }

    pub(super) fn find_user(&self, name: &str) -> Result<User> {
        self.store.user(name)?.ok_or_else(|| {
            let shown: String = name.chars().take(NAME_CHARACTERS).collect();
            Error::not_found(Said::of("error.no_user", &[("name", &shown)]))
        })
    }

    /// The same where it is no program, which has no password.
    pub(super) fn find_person(&self, name: &str) -> Result<User> {
        let user = self.find_user(name)?;
        if user.is_program() {
            return Err(Error::refused("error.is_program", &[("name", &user.name)]));
        }
        Ok(user)
    }

    fn hash_password(&self, password: &Secret) -> Result<String> {
        password::check(password)?;
        self.verifier.hash(password)
    }

    /// Tells of the conversations that went with a person, ends their turns and what they asked
    /// for, and does what [`Service::finish_removals`] does.
    pub(super) fn person_gone(&self, gone: Vec<(ConversationId, Readers)>) {
        let busy = self.queue.conversations();
        for (id, readers) in gone {
            self.hub.delete(id, readers, &busy);
            for turn in self.queue.withdraw_all(id) {
                self.turn_lost(turn, id);
            }
        }
        self.hub.publish_people();
        self.finish_removals();
        self.end_lost_questions();
    }

    /// Deletes the files of people who were removed, or hands them over, and removes their names
    /// from the configuration: whoever gets one next is somebody else. What fails is tried
    /// again, also after a crash, and nobody gets that name before.
    pub fn finish_removals(&self) {
        let mut changed = Vec::new();
        {
            // A name that somebody has got since must not be removed again.
            let _one_at_a_time = lock(&self.removing);
            self.logged("the files of removed people", self.settle_files());
            let names = match self.store.removed_names() {
                Ok(names) => names.uncommitted(),
                Err(error) => return log::warn!("removed people: {error}"),
            };
            for name in names {
                let forgotten = self.settings.forget_person(&name);
                match forgotten.and_then(|fields| {
                    self.store.name_forgotten(&name)?;
                    Ok(fields)
                }) {
                    Ok(fields) => changed.extend(fields),
                    Err(error) => log::warn!("{name} stays in the configuration: {error}"),
                }
            }
        }
        self.config_changed(&changed);
    }

    fn settle_files(&self) -> Result<()> {
        // Without another connection to the database: mostly there are none.
        if !self.store.has_left_files()?.uncommitted() {
            return Ok(());
        }
        for left in &*self.store.left_files()? {
            let person = (left.person, &*left.name);
            match agent::tools::settle(&self.data_dir, person, left.heir) {
                Ok(()) => self.store.files_settled(left.person)?,
                Err(error) => log::warn!("the files of {}: {error}", left.name),
            }
        }
        Ok(())
    }

    /// Closes the connections whose tokens are no longer valid, or grant another
    /// role than when they signed in.
    pub(super) fn close_revoked(&self) {
        for (token, role) in self.connections.tokens() {
            if matches!(self.store.token_role(token), Ok(granted) if granted != Some(role)) {
                self.connections.revoke(token, role);
            }
        }
    }
}

pub(super) fn parse_role(word: Option<String>) -> Result<Option<UserRole>> {
    word.map(|word| UserRole::parse(&word).ok_or_else(not_a_role))
        .transpose()
}

fn not_a_role() -> Error {
    Error::invalid_request("\"role\" must be viewer, user or admin")
}

/// What `people.NAME` gets for a child: no tool that reaches the internet, the files or
/// the machine, and a budget.
pub fn child_limits() -> Value {
    json!({
        "permission_mode": "ask",
        "tools": ["current_time", "remember", "recall", "forget", "schedule", "lists", "find_events"],
        "monthly_tokens": 1_000_000,
        "instructions": "You are talking with a child. Answer in short, simple and friendly \
            words. Leave out what is not for children, and say kindly when something is to be \
            asked of a grown-up.",
        "tool_permissions": { "schedule": "allow_own", "lists": "allow" },
        "approves": ["schedule", "lists"],
    })
}
