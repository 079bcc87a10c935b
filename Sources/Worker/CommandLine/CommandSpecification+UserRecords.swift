/// The commands about single users.
extension CommandSpecification {
    /// `users list`.
    static let listUsers = CommandSpecification(
        words: ["users", "list"],
        summary: "list the stored users",
        discussion: [
            """
            Lists every user by id, with e-mail address, name, last sign-in and creation. A deleted user stays in the \
            list for a while, with the id alone. On a terminal the columns fit its width; in a pipe or a file no text \
            is cut.
            """
        ],
        options: [.json],
        settings: [.config, .database, .logLevel],
        examples: [
            Example(line: "refresh-worker users list", purpose: "a table of all users"),
            Example(
                line: "refresh-worker users list --json | jq -r 'select(.email_verified == false) .user_id'",
                purpose: "the users whose e-mail address is not verified"
            ),
        ],
        exitCodes: [.success, .usage, .internalFailure, .inputOutput, .leftForLater, .configuration],
        make: { .listUsers(isJSON: $0.has("json")) }
    )

    /// `users show`.
    static let showUser = CommandSpecification(
        words: ["users", "show"],
        summary: "show a user's data and the state of the user's grant",
        discussion: ["Shows what is stored about the user, never a token. grants show has more about the grant."],
        operands: [.user("the user to show")],
        options: [.json],
        settings: [.config, .database, .logLevel],
        examples: [Example(line: "refresh-worker users show alice", purpose: "who is alice?")],
        exitCodes: [
            .success, .usage, .unknownUser, .internalFailure, .inputOutput, .leftForLater, .configuration,
        ],
        make: { .showUser(user: $0.operand, isJSON: $0.has("json")) }
    )

    /// `users delete`.
    static let deleteUser = CommandSpecification(
        words: ["users", "delete"],
        summary: "delete a user: sessions, grant and data, here and at Google",
        discussion: [
            """
            Does the same as the app's route DELETE /v1/user/me: it ends the user's sessions, revokes the grant at \
            Google, deletes the user's data and puts the notice user.deleted into the outbox if --notice-url is \
            configured. Only the id is kept, and refused for a day, because tokens that name it may live that long. \
            This cannot be undone.
            """,
            """
            If another stored grant has the same Google account and client, nothing is revoked at Google, because \
            that would end the other grant too. SIGTERM and SIGINT stop it without waiting for Google's answer; a \
            running worker revokes the grant later.
            """,
        ],
        operands: [.user("the user to delete")],
        options: [.json],
        settings: [
            .config, .database, .keyFile, .clientID, .clientSecretFile, .revocationEndpoint, .noticeURL, .caFile,
            .logLevel,
        ],
        examples: [Example(line: "refresh-worker users delete alice", purpose: "delete alice at alice's request")],
        exitCodes: [
            .success, .usage, .unknownUser, .internalFailure, .inputOutput, .leftForLater, .configuration, .interrupted,
            .terminated,
        ],
        make: { .deleteUser(user: $0.operand, isJSON: $0.has("json")) }
    )
}
