//! Who is asked before a tool runs, who may answer, and who reads a file.

use super::{Actor, Approval, Asker, FileNumber, OF_TOKEN, Outside, Reference, Refusal, Role};
use super::{ConversationNumber, Token, Verdict};

/// The tools that people may answer for themselves where nothing else is set.
const OWN_TOOLS: [&str; 1] = ["write_file"];

impl Reference {
    /// What happens when the model calls a tool that changes something, and for which
    /// the household is to be asked.
    pub fn verdict(&self, actor: Actor, number: ConversationNumber, tool: &str) -> Verdict {
        if !self.is_offered(actor, number, tool) {
            return Verdict::NotOffered;
        }
        let covers = |place: Option<ConversationNumber>| {
            let mut grants = self.grants.iter();
            grants.any(|(of, asker, name)| (*of, *asker, *name) == (place, actor.asker(), tool))
        };
        let is_outside = self.conversations[number].outside == Outside::Yes;
        match !is_outside && (covers(Some(number)) || covers(None)) {
            true => Verdict::Runs,
            false => Verdict::Asks,
        }
    }

    /// Whether the model may use a tool for this actor in this conversation at all.
    pub fn is_offered(&self, actor: Actor, number: ConversationNumber, tool: &str) -> bool {
        // What is the household's is not for programs, nor where one reads along.
        let is_of_account = self.conversations[number].account.is_some();
        if tool != "lamp" && is_of_account {
            return false;
        }
        match actor {
            Actor::Person { number, token } => {
                let of_person = self.people[number].tools;
                of_person.is_none_or(|tools| tools.contains(&tool))
                    && (token != Token::Tools || OF_TOKEN.contains(&tool))
            }
            Actor::Account(_) => tool == "lamp",
        }
    }

    /// The calls that wait for an answer and that the actor sees, oldest first.
    pub fn waiting(&self, actor: Actor) -> Vec<&Approval> {
        self.approvals
            .iter()
            .filter(|one| self.waits(one) && self.sees_approval(actor, one))
            .collect()
    }

    pub fn waits(&self, approval: &Approval) -> bool {
        !approval.is_decided && !self.conversations[approval.conversation].is_deleted
    }

    /// Whether the person who asked does not see the conversation any longer.
    pub fn is_lost(&self, approval: &Approval) -> bool {
        match approval.asker {
            Asker::Person(number) if self.people[number].is_here => {
                let asker = Actor::whole(number);
                self.visible(asker, approval.conversation).is_err()
            }
            _ => false,
        }
    }

    /// Whether the actor hears of an approval: whoever asked while they see its
    /// conversation.
    pub fn hears_of_approval(&self, actor: Actor, approval: &Approval) -> bool {
        self.sees_approval(actor, approval)
            && (self.is_admin(actor) || self.visible(actor, approval.conversation).is_ok())
    }

    /// Those who asked, and those who may answer.
    pub fn sees_approval(&self, actor: Actor, approval: &Approval) -> bool {
        match actor {
            // It may be about what is private.
            Actor::Person {
                token: Token::Household,
                ..
            }
            | Actor::Account(_) => false,
            Actor::Person { .. } => self.is_admin(actor) || approval.asker == actor.asker(),
        }
    }

    /// Whether the actor may answer, leaving aside whether somebody did already.
    pub fn may_answer(&self, actor: Actor, approval: &Approval) -> Result<(), Refusal> {
        self.needs(actor, Role::User)?;
        let Some(number) = actor.person() else {
            return Err(Refusal::Unauthorized);
        };
        let conversation = &self.conversations[approval.conversation];
        let is_gone = conversation.is_deleted || conversation.message(approval.question).is_none();
        if is_gone || self.is_lost(approval) || !self.sees_approval(actor, approval) {
            return Err(Refusal::NotFound);
        }
        self.needs_all_tools(actor)?;
        let approves = self.people[number].approves.unwrap_or(&OWN_TOOLS);
        let is_own = approval.asker == Asker::Person(number) && approves.contains(&approval.tool);
        match self.is_admin(actor) || is_own {
            true => Ok(()),
            false => Err(Refusal::Unauthorized),
        }
    }

    /// What a token with some tools may not do, since others would run by it.
    pub fn needs_all_tools(&self, actor: Actor) -> Result<(), Refusal> {
        match actor {
            Actor::Person {
                token: Token::Tools,
                ..
            } => Err(Refusal::Unauthorized),
            _ => Ok(()),
        }
    }

    /// Whether the one who asked is still there.
    pub fn is_there(&self, asker: Asker) -> bool {
        match asker {
            Asker::Person(number) => self.people[number].is_here,
            Asker::Account(_) => true,
        }
    }

    /// Whether the actor may read a file: as its conversation and, until a message
    /// carries it, whoever put it. A token for the household has what such a one has put.
    pub fn may_read(&self, actor: Actor, number: FileNumber) -> Result<(), Refusal> {
        let file = &self.files[number];
        let may = match file.conversation {
            _ if file.is_deleted => false,
            Some(conversation) => self.visible(actor, conversation).is_ok(),
            None => match (file.uploader, actor) {
                (
                    Some(Actor::Person { number, token }),
                    Actor::Person {
                        number: reader,
                        token: by,
                    },
                ) => number == reader && (by != Token::Household || token == by),
                _ => false,
            },
        };
        match may {
            true => Ok(()),
            false => Err(Refusal::NotFound),
        }
    }

    /// The bytes of all files that are there.
    pub fn bytes_of_files(&self) -> usize {
        let files = self.files.iter().filter(|file| {
            let conversation = file.conversation.map(|number| &self.conversations[number]);
            !file.is_deleted && conversation.is_none_or(|one| !one.is_deleted)
        });
        files.map(|file| file.content.len()).sum()
    }

    /// Whether a message of the actor may carry a file: their own, once.
    pub fn may_send(&self, actor: Actor, number: FileNumber) -> Result<(), Refusal> {
        match self.files[number].conversation {
            Some(_) => Err(Refusal::NotFound),
            None => self.may_read(actor, number),
        }
    }
}
