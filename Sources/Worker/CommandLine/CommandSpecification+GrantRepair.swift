/// The commands that try grants again, or correct what was stored with them.
extension CommandSpecification {
    /// The states in which `grants retry` finds something to try.
    private static let retriedStates = ["suspended", "retrying"]

    /// `grants retry`.
    static let retryGrants = CommandSpecification(
        words: ["grants", "retry"],
        summary: "make grants due now, without waiting for their back-off or probe",
        discussion: [
            """
            Makes the grant of USER due now, or all grants that fit --state and --client, and prints how many. A \
            running worker refreshes them within two seconds, at its usual pace; the next start or pass does so \
            otherwise. Without --state, --client selects the client's grants that are retrying or suspended.
            """,
            """
            Some grants stay as they are, and are counted: those that a worker refreshes at this moment; those whose \
            invalid_grant waits for its confirmation, because an early one would defeat it; and those without a \
            refresh token. A grant that ended is not tried again: its user must sign in. Grants that are suspended \
            because a security event disabled the account are tried only with USER or --state suspended.
            """,
        ],
        operands: [.user("the user whose grant to try", isOptional: true)],
        options: [
            OptionSpecification(
                name: "state",
                kind: .choice(retriedStates, as: "STATE"),
                summary: "all grants in this state: " + retriedStates.joined(separator: " or ")
            ),
            .client("all grants of this client id that are retrying or suspended"),
            .json,
        ],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            Example(line: "refresh-worker grants retry alice", purpose: "try alice's grant now"),
            Example(
                line: "refresh-worker grants retry --state suspended",
                purpose: "after an administrator has lifted a block"
            ),
        ],
        exitCodes: [
            .success, .usage, .unknownUser, .internalFailure, .inputOutput, .leftForLater, .userMustAct,
            .configuration,
        ],
        problems: retryProblems,
        make: { arguments in
            .retryGrants(
                GrantRetryOptions(
                    user: arguments.operands.first,
                    state: arguments.options["state"],
                    clientID: arguments.options["client"],
                    isJSON: arguments.has("json")
                )
            )
        }
    )

    @Sendable
    private static func retryProblems(_ arguments: CommandArguments) -> [String] {
        let selectsMany = arguments.has("state") || arguments.has("client")
        switch (arguments.operands.isEmpty, selectsMany) {
        case (true, false): return ["'grants retry' takes USER, --state or --client; none was given"]
        case (false, true): return ["'grants retry' takes either USER, or --state and --client, not both"]
        default: return []
        }
    }

    /// `grants set-client`.
    static let setClient = CommandSpecification(
        words: ["grants", "set-client"],
        summary: "move grants that were stored for the wrong client id to the right one",
        discussion: [
            """
            Changes the client id of all grants of --from to --to, and prints how many. Grants that Google refused as \
            grants of another client id (client_mismatch, client_mismatch_unconfirmed) are tried again now, also if \
            that had ended them; all others keep their state and due time. The client id of --to must be configured.
            """,
            """
            A grant that a worker refreshes at this moment is not moved; the exit code is then 75: run the command \
            again.
            """,
        ],
        options: [
            OptionSpecification(name: "from", kind: .clientID, summary: "the client id that is stored now; needed"),
            OptionSpecification(name: "to", kind: .clientID, summary: "the right client id; needed"),
            .json,
        ],
        settings: [.config, .database, .keyFile, .clientID, .logLevel],
        examples: [
            Example(
                line: """
                    refresh-worker grants set-client --from 1234-old.apps.googleusercontent.com \
                    --to 1234-abc.apps.googleusercontent.com
                    """,
                purpose: "after an import with a wrong client id"
            )
        ],
        exitCodes: [.success, .usage, .internalFailure, .inputOutput, .leftForLater, .configuration],
        problems: setClientProblems,
        make: { arguments in
            .setClient(
                from: arguments.options["from"] ?? "",
                to: arguments.options["to"] ?? "",
                isJSON: arguments.has("json")
            )
        }
    )

    @Sendable
    private static func setClientProblems(_ arguments: CommandArguments) -> [String] {
        let missing = ["from", "to"].filter { !arguments.has($0) }.map { "--\($0) is needed" }
        guard missing.isEmpty, arguments.options["from"] == arguments.options["to"] else { return missing }
        return ["--from and --to are the same client id"]
    }
}

/// The arguments of `grants retry`: a user, or a state or a client id or both.
package struct GrantRetryOptions: Equatable, Sendable {
    package var user: String?
    package var state: String?
    package var clientID: String?
    package var isJSON = false

    package init(user: String? = nil, state: String? = nil, clientID: String? = nil, isJSON: Bool = false) {
        self.user = user
        self.state = state
        self.clientID = clientID
        self.isJSON = isJSON
    }
}
