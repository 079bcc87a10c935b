import Base
import Routes
import Storage

extension Command {
    /// `users list`: prints the stored users.
    static let listUsers = Command(
        words: ["users", "list"],
        summary: "list the stored users",
        discussion: """
            Lists the users by id, with e-mail address, name, last sign-in and creation: every user, or those that fit \
            all of the options. A deleted user stays in the list for a while, with the id alone. On a terminal the \
            columns fit its width; in a pipe or a file no text is cut.
            """,
        options: [
            .json,
            OptionSpecification(
                "state",
                .choice(userStates, as: "STATE"),
                "only users in this state: " + userStates.joined(separator: ", ")
            ),
            .email("users"),
            OptionSpecification("limit", .number(1...1_000_000), "at most this many users"),
        ],
        settings: [.config, .database, .logLevel],
        examples: [
            "refresh-worker users list": "a table of all users",
            "refresh-worker users list --email alice@example.com": "who writes to you from this address?",
            "refresh-worker users list --json | jq -r 'select(.email_verified == false) .user_id'":
                "the users whose e-mail address is not verified",
        ],
        exitCodes: .ofDatabase()
    ) { arguments, context in
        let (state, email, limit) = (arguments["state"], arguments["email"], arguments["limit"].flatMap { Int($0) })
        let count = try await context.withExistingStore(for: .reading) { store in
            var list = Listing(userColumns, limit: limit, json: context.printsJSON ? { $0.write(to: &$1) } : nil)
            var last: String?
            while true {
                let page =
                    if let email {
                        try await store.users(withEmail: email)
                    } else {
                        try await store.users(after: last, atMost: GrantPages.usualSize)
                    }
                let fitting = page.filter { state == nil || $0.status == state }
                let wantsMore = try await list.print(fitting, at: context.time.now)
                last = page.last?.id
                guard wantsMore, last != nil, email == nil else { return list.count }
            }
        }
        if count == 0 && !context.printsJSON {
            let selectsAll = state == nil && email == nil
            Output.error.line(selectsAll ? "no user is stored" : "no stored user fits all of these options")
        }
        return .success
    }

    private static let userStates = ["active", "inactive", "deleted"]

    private static let userColumns: [Listing<User>.Column] = [
        .init(title: "USER", narrowest: 12) { user, _ in user.id.escapingInvisible },
        .init(title: "E-MAIL", narrowest: 16) { user, _ in user.email?.escapingInvisible ?? "-" },
        .init(title: "LAST SIGN-IN") { user, now in user.lastLoginAt?.distance(from: now) ?? "-" },
        .init(title: "CREATED") { user, now in user.createdAt.distance(from: now) },
        .init(title: "STATE") { user, _ in user.status },
        .init(title: "NAME", narrowest: 10) { user, _ in user.name?.escapingInvisible ?? "-" },
    ]
}

extension Command {
    /// `users show USER`: prints what is stored about a user, and the state of the user's grant.
    static let showUser = Command(
        words: ["users", "show"],
        summary: "show a user's data and the state of the user's grant",
        discussion: "Shows what is stored about the user, never a token. grants show has more about the grant.",
        operands: [.user("the user to show")],
        options: [.json],
        settings: [.config, .database, .logLevel],
        examples: ["refresh-worker users show alice": "who is alice?"],
        exitCodes: .ofDatabase(.unknownUser)
    ) { arguments, context in
        let id = arguments.operand
        let (user, grant) = try await context.withExistingStore(for: .reading) { store in
            guard let user = try await store.user(id) else { throw CommandError(unknownUser: id) }
            return (user, try await store.grant(ofUser: id))
        }
        let lines = user.lines(with: grant, at: context.time.now)
        context.answer(lines.joined(separator: "\n")) { user.write(with: grant, to: &$0) }
        return .success
    }
}

extension CommandError {
    init(unknownUser id: String) {
        self.init(.unknownUser, "no user \(DisplayedText(id)) is stored, or the user was deleted")
    }
}

/// A user as `users list` and `users show` print it.
extension User {
    /// Adds the fields for programs.
    func write(to line: inout JSONLine) {
        line.field("user_id", id)
        line.fieldOrNull("email", email)
        line.fieldOrNull("email_verified", emailIsVerified)
        line.fieldOrNull("name", name)
        line.fieldOrNull("picture", picture)
        line.fieldOrNull("google_user_id", googleUserID)
        line.field("is_active", isActive)
        line.field("created_at", createdAt.iso8601)
        line.fieldOrNull("last_login", lastLoginAt?.iso8601)
        line.fieldOrNull("deleted_until", deletedUntil?.iso8601)
    }

    /// Adds the same fields and the user's grant, as `grants list` prints it.
    func write(with grant: Grant?, to line: inout JSONLine) {
        write(to: &line)
        if let grant {
            line.object("grant", grant.write)
        } else {
            line.null("grant")
        }
    }

    /// Everything known about the user, for people.
    func lines(with grant: Grant?, at now: Timestamp) -> [String] {
        let deleted = deletedUntil.map { "deleted; the id is refused until \($0.shown(at: now))" }
        let verified = emailIsVerified.map { $0 ? ", verified" : ", not verified" } ?? ""
        let facts: [(name: String, value: String)] = [
            ("user", id.escapingInvisible),
            ("state", deleted ?? status),
            ("e-mail", email.map { $0.escapingInvisible + verified } ?? "-"),
            ("name", (name ?? grant?.owner.name)?.escapingInvisible ?? "-"),
            ("google account", googleUserID.map { "id \($0.escapingInvisible)" } ?? "id unknown"),
            ("last sign-in", lastLoginAt?.shown(at: now) ?? "-"),
            ("created", createdAt.shown(at: now)),
            ("grant", grant.map { "\($0.stateWithReason), since \($0.since.shown(at: now))" } ?? "none"),
        ]
        return facts.lines
    }

    /// The user's status in a word.
    var status: String { isDeleted ? "deleted" : isActive ? "active" : "inactive" }
}

extension Command {
    /// `users delete USER`: deletes a user here, and ends the user's grant at Google.
    static let deleteUser = Command(
        words: ["users", "delete"],
        summary: "delete a user: sessions, grant and data, here and at Google",
        discussion: """
            Does the same as the app's route DELETE /v1/user/me: it ends the user's sessions, revokes the grant at \
            Google, deletes the user's data and puts the notice user.deleted into the outbox if --notice-url is \
            configured. Only the id is kept, and refused for a day, or for as long as a token that names it is \
            accepted. This cannot be undone.

            If another stored grant has the same Google account, and a client of the same Cloud project, nothing is \
            revoked at Google, because that would end the other grant too. On a terminal it asks before. SIGTERM and \
            SIGINT stop it without waiting for Google's answer; a running worker revokes the grant later.
            """,
        operands: [.user("the user to delete")],
        options: [.dryRun, .yes, .json],
        settings: [
            .config, .database, .keyFile, .clientID, .clientSecretFile, .revocationEndpoint, .noticeURL, .caFile,
            .logLevel,
        ],
        examples: [
            "refresh-worker users delete alice --dry-run": "what would be deleted?",
            "refresh-worker users delete alice": "delete alice at alice's request",
        ],
        exitCodes: .ofDatabase(.unknownUser, .interrupted, .terminated)
    ) { arguments, context in
        let id = arguments.operand
        let store = try await context.openExistingStore(for: .changing)
        let now = context.time.now
        @Sendable func sessions(_ deletion: AccountDeletion) -> String { deletion.endedSessions.counted("session") }
        @Sendable func plan(_ deletion: AccountDeletion) -> String {
            let grant = deletion.plannedEnd.map { ", and end the grant here\($0.planClause)" } ?? ""
            return "delete user \(DisplayedText(id)) and \(sessions(deletion))\(grant)"
        }
        let missing = CommandError(unknownUser: id)
        let (outcome, isStored) = try await context.change(store, arguments, of: id, missing: missing, plan: plan) {
            try AccountDeletion.delete(user: id, in: $0, at: now)
        }
        guard isStored else {
            context.answer("would \(plan(outcome))") { outcome.write(to: &$0, ofUser: id, outcome.plannedEnd) }
            return .success
        }
        func print(_ end: RevocationEnd?) {
            let grant = end.map { "the grant is disconnected here\($0.clause)" } ?? "there was no grant"
            context.answer("deleted user \(DisplayedText(id)) and \(sessions(outcome)); \(grant)") { line in
                outcome.write(to: &line, ofUser: id, end)
            }
        }
        guard outcome.grant != nil else {
            await store.close()
            print(nil)
            return .success
        }
        do {
            let (end, code) = try await context.finishRevocation(of: id, isShared: outcome.isShared, in: store)
            print(end)
            return code
        } catch {
            // The user is deleted, whatever prevents the revocation.
            await store.close()
            print(.pending)
            throw error
        }
    }
}

extension Command {
    /// `users forget`: deletes what identifies the users whose grants ended long ago.
    static let forgetUsers = Command(
        words: ["users", "forget"],
        summary: "forget the users whose grants ended long ago",
        discussion: """
            Does at once what a worker with --forget-ended-after does daily. For each grant that ended more than that \
            many days ago it deletes the tokens, the scopes and the account of the grant, and the e-mail address, name and \
            picture of the user. The user's id here and at Google and the history of the grant stay. Users who have a \
            session, or have signed in since, are left out. The backend gets no notice. This cannot be undone, so days in \
            which the wall clock was set forward do not count until a person confirms the clock ('store clock').
            """,
        options: [.toggle("dry-run", "change nothing and list whom it would forget"), .json],
        settings: [.config, .database, .forgetEndedAfter, .logLevel],
        examples: ["refresh-worker users forget --forget-ended-after 365 --dry-run": "who would be forgotten?"],
        exitCodes: .ofDatabase()
    ) { arguments, context in
        guard let retention = context.configuration.forgetEndedAfter else {
            throw arguments.refusal(["'users forget' needs --forget-ended-after"])
        }
        let isDryRun = arguments.has("dry-run")
        let now = context.time.now
        let count = try await context.withExistingStore(for: isDryRun ? .reading : .changing) { store in
            let clock =
                if isDryRun {
                    try await store.deletionClock(by: context.time)
                } else {
                    try await store.advanceDeletionClock(by: context.time)
                }
            if let warning = clock.warning { Output.error.line(warning) }
            var list = Listing(forgottenColumns, json: context.printsJSON ? { $0.write(to: &$1) } : nil)
            try await store.forgetGrants(endedBefore: clock.now - retention, isDryRun: isDryRun, at: now) { page in
                _ = try await list.print(page, at: now)
            }
            return list.count
        }
        if !context.printsJSON {
            Output.error.line("\(isDryRun ? "would forget" : "forgot") \(count.counted("user"))")
        }
        return .success
    }

    private static let forgottenColumns: [Listing<Grant>.Column] = [
        .init(title: "USER", narrowest: 12) { grant, _ in grant.userID.escapingInvisible },
        .init(title: "STATE") { grant, _ in grant.stateWithReason },
        .init(title: "SINCE") { grant, now in grant.since.distance(from: now) },
    ]
}
