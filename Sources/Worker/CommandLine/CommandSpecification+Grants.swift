extension CommandSpecification {
    /// The commands about stored grants.
    static let grants = CommandSpecification(
        words: ["grants"],
        summary: "list, show, add, import, try, correct, export or disconnect stored grants",
        discussion: [
            """
            A grant is one user's consent at Google: its refresh token, its current access token and its state. Each \
            user has at most one. All of these commands may be used while the worker runs.
            """
        ],
        settings: [.config, .database, .keyFile],
        exitCodes: [.usage],
        subcommands: [
            listGrants, show, history, add, importing, retryGrants, setClient, export, disconnect,
        ]
    )

    private static let show = CommandSpecification(
        words: ["grants", "show"],
        summary: "show everything known about a user's grant, and its history",
        discussion: ["Shows the grant's state, its reason and time, its due time and its history, never a token."],
        operands: [.user("the user whose grant to show")],
        options: [.json],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [Example(line: "refresh-worker grants show alice", purpose: "what happened to alice's grant")],
        exitCodes: [
            .success, .usage, .unknownUser, .internalFailure, .inputOutput, .leftForLater, .configuration,
        ],
        make: { .showGrant(user: $0.operand, isJSON: $0.has("json")) }
    )

    private static let history = CommandSpecification(
        words: ["grants", "history"],
        summary: "show the history of a user's grant, the latest event first",
        discussion: [
            """
            Shows when tokens were brought, when the state changed and why, and when Google returned another refresh \
            token or other scopes: the last hundred events, and the last time that tokens were brought.
            """
        ],
        operands: [.user("the user of the grant")],
        options: [.json],
        settings: [.config, .database, .logLevel],
        examples: [
            Example(line: "refresh-worker grants history alice", purpose: "since when is alice disconnected, and why?")
        ],
        exitCodes: [
            .success, .usage, .unknownUser, .internalFailure, .inputOutput, .leftForLater, .configuration,
        ],
        make: { .showHistory(user: $0.operand, isJSON: $0.has("json")) }
    )

    private static let add = CommandSpecification(
        words: ["grants", "add"],
        summary: "store a user's grant from a refresh token",
        discussion: [
            """
            Reads either a refresh token alone, or the JSON of a grant (access_token, refresh_token, expires_at, scope \
            and so on), from standard input or from a file. It is never an argument, because every user of the machine \
            can read those. A grant that the user already has is replaced.
            """
        ],
        operands: [.user("the user of the grant, by the backend's id")],
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
            .json,
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
        make: { arguments in
            .addGrant(
                user: arguments.operand,
                tokenFile: arguments.options["token-file"],
                clientID: arguments.options["client-id"],
                isJSON: arguments.has("json")
            )
        }
    )

    private static let export = CommandSpecification(
        words: ["grants", "export"],
        summary: "write all grants as JSON lines",
        discussion: [
            """
            Writes all grants with their states to standard output, in the form that grants import reads. The tokens \
            are in plain text, so --plaintext is required. To move a whole database sealed, use refresh-worker backup. \
            A grant whose tokens cannot be opened with the key ring is reported and left out, and the exit code is 78.
            """
        ],
        options: [
            OptionSpecification(
                name: "plaintext",
                kind: .toggle,
                summary: "confirm that the output contains usable tokens"
            )
        ],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            Example(
                line: "refresh-worker grants export --plaintext | age -r KEY > grants.jsonl.age",
                purpose: "encrypt the tokens before they reach the disk"
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
            Moves the grant to disconnected immediately and revokes it at Google; its tokens are wiped when that has \
            succeeded or was tried for a day. The history is kept. If another stored grant has the same Google account \
            and client, nothing is revoked at Google, because that would end the other grant too.
            """,
            """
            SIGTERM and SIGINT stop it without waiting for Google's answer; a running worker revokes the grant later.
            """,
        ],
        operands: [.user("the user whose grant to end")],
        options: [.json],
        settings: [
            .config, .database, .keyFile, .clientID, .clientSecretFile, .revocationEndpoint, .caFile, .logLevel,
        ],
        examples: [Example(line: "refresh-worker grants disconnect alice", purpose: "end alice's grant")],
        exitCodes: [
            .success, .usage, .unknownUser, .internalFailure, .inputOutput, .leftForLater, .configuration, .interrupted,
            .terminated,
        ],
        make: { .disconnectGrant(user: $0.operand, isJSON: $0.has("json")) }
    )
}
