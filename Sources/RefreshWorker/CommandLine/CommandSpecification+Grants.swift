extension CommandSpecification {
    /// The states that a grant may be in, as `grants list --state` takes them.
    static let grantStates = ["active", "retrying", "suspended", "reauth_required", "disconnected"]

    /// The commands about stored grants.
    static let grants = CommandSpecification(
        words: ["grants"],
        summary: "list, show, add, import, export or disconnect stored grants",
        discussion: [
            """
            A grant is one user's consent at Google: its refresh token, its current access token and its state. Each \
            user has at most one. All of these commands may be used while the worker runs.
            """
        ],
        settings: [.config, .database, .keyFile],
        exitCodes: [.usage],
        subcommands: [list, show, add, importing, export, disconnect]
    )

    private static let json = OptionSpecification(
        name: "json",
        kind: .toggle,
        summary: "JSON, one object a line, instead of text; never a token"
    )

    private static let list = CommandSpecification(
        words: ["grants", "list"],
        summary: "list the stored grants and their states",
        discussion: ["Lists every grant, or those in one state, with the reason of the state. Prints no token."],
        options: [
            json,
            OptionSpecification(
                name: "state",
                kind: .choice(grantStates, as: "STATE"),
                summary: "only grants in this state: " + grantStates.joined(separator: ", ")
            ),
        ],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            Example(line: "refresh-worker grants list", purpose: "a table of all grants"),
            Example(
                line: "refresh-worker grants list --state disconnected --json | jq -r .user_id",
                purpose: "whose consent is gone"
            ),
        ],
        exitCodes: [.success, .usage, .internalFailure, .inputOutput, .leftForLater, .configuration],
        make: { .listGrants(state: $0.options["state"], isJSON: $0.has("json")) }
    )

    private static let show = CommandSpecification(
        words: ["grants", "show"],
        summary: "show all that is known about a user's grant, and its history",
        discussion: ["Shows the grant's state, since when and why, when it is due, and what happened to it. No token."],
        operands: [.user("the user whose grant is wanted")],
        options: [json],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [Example(line: "refresh-worker grants show alice", purpose: "what happened to alice's grant")],
        exitCodes: [
            .success, .usage, .unknownUser, .internalFailure, .inputOutput, .leftForLater, .configuration,
        ],
        make: { .showGrant(user: $0.operand, isJSON: $0.has("json")) }
    )

    private static let add = CommandSpecification(
        words: ["grants", "add"],
        summary: "store a user's grant from a refresh token",
        discussion: [
            """
            Reads either a refresh token alone, or the JSON of a grant (access_token, refresh_token, expires_at, \
            scope and so on), from standard input or from a file. Never from the command line, where every user of \
            the machine could read it. A grant that the user already has is replaced.
            """
        ],
        operands: [.user("the user whom the grant belongs to, as your backend names them")],
        options: [
            OptionSpecification(
                name: "token-file",
                kind: .file,
                summary: "read the token or the JSON from this file instead of standard input"
            ),
            OptionSpecification(
                name: "client-id",
                kind: .clientID,
                summary: "the client id that the token was issued to; needed when several are configured"
            ),
        ],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            Example(
                line: "refresh-worker grants add alice --token-file ./alice.token",
                purpose: "a refresh token kept in a file"
            ),
            Example(line: "pass show google/alice | refresh-worker grants add alice", purpose: "from a password store"),
        ],
        exitCodes: [
            .success, .usage, .badData, .inputUnreadable, .internalFailure, .inputOutput, .leftForLater,
            .configuration,
        ],
        make: {
            .addGrant(user: $0.operand, tokenFile: $0.options["token-file"], clientID: $0.options["client-id"])
        }
    )

    private static let export = CommandSpecification(
        words: ["grants", "export"],
        summary: "write all grants out as JSON lines",
        discussion: [
            """
            Writes to standard output what grants import reads, with each grant's state. The tokens are in plain \
            text, so it refuses without --plaintext. To move a whole database sealed, use refresh-worker backup. A grant \
            whose tokens no key of the ring opens is reported and left out, and the exit code is then 78.
            """
        ],
        options: [
            OptionSpecification(
                name: "plaintext",
                kind: .toggle,
                summary: "yes, write tokens that anybody can use who reads them"
            )
        ],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            Example(
                line: "refresh-worker grants export --plaintext | age -r KEY > grants.jsonl.age",
                purpose: "encrypted on its way to the disk"
            )
        ],
        exitCodes: [.success, .usage, .internalFailure, .inputOutput, .leftForLater, .configuration],
        make: { .exportGrants(isPlaintext: $0.has("plaintext")) }
    )

    private static let disconnect = CommandSpecification(
        words: ["grants", "disconnect"],
        summary: "end a user's grant, here and at Google",
        discussion: [
            """
            Moves the grant to disconnected at once and has it revoked at Google; its tokens are wiped when that has \
            succeeded or was tried for a day. The history stays. Where another stored grant shares the same Google \
            account and client, nothing is revoked at Google, because that would end the other one too.
            """,
            """
            SIGTERM and SIGINT stop it without waiting for Google's answer; a running worker revokes the grant later.
            """,
        ],
        operands: [.user("the user whose grant is to end")],
        settings: [
            .config, .database, .keyFile, .clientID, .clientSecretFile, .revocationEndpoint, .caFile, .logLevel,
        ],
        examples: [Example(line: "refresh-worker grants disconnect alice", purpose: "alice wants out")],
        exitCodes: [
            .success, .usage, .unknownUser, .internalFailure, .inputOutput, .leftForLater, .configuration, .interrupted,
            .terminated,
        ],
        make: { .disconnectGrant(user: $0.operand) }
    )
}
