import Base
import Records
import Storage

extension Command {
    /// The states in which it finds something to try.
    private static let states = ["suspended", "retrying"]

    /// `grants retry`: makes grants due now.
    static let retryGrants = Command(
        words: ["grants", "retry"],
        summary: "make grants due now, without waiting for their back-off or probe",
        discussion: """
            Makes the grant of USER due now, or all grants that fit --state and --client, and prints how many. A \
            running worker refreshes them within two seconds, at its usual pace; the next start or pass does so \
            otherwise. Without --state, --client selects the client's grants that are retrying or suspended.

            Some grants stay as they are, and are counted: those that a worker refreshes at this moment; those whose \
            refusal waits for its confirmation, because an early one would defeat it; and those without a \
            refresh token. A grant that ended is not tried again: its user must sign in. Grants that are suspended \
            because a security event disabled the account are tried only with USER or --state suspended.
            """,
        operands: [.user("the user whose grant to try", isOptional: true)],
        options: [
            OptionSpecification(
                "state",
                .choice(states, as: "STATE"),
                "all grants in this state: " + states.joined(separator: " or ")
            ),
            .client("all grants of this client id that are retrying or suspended"),
            .connection,
            .json,
        ],
        settings: [.config, .database, .keyFile, .keyCommand, .logLevel],
        examples: [
            "refresh-worker grants retry alice": "try alice's grant now",
            "refresh-worker grants retry --state suspended": "after an administrator has lifted a block",
        ],
        exitCodes: .ofDatabase(.unknownUser, .userMustAct),
        check: { arguments throws(CommandError) in
            switch (arguments.operands.isEmpty, arguments.has("state") || arguments.has("client")) {
            case (true, false):
                throw arguments.refusal(["'grants retry' takes USER, --state or --client; none was given"])
            case (false, true):
                throw arguments.refusal(["'grants retry' takes either USER, or --state and --client, not both"])
            default: break
            }
            guard !arguments.operands.isEmpty || !arguments.has("connection") else {
                throw arguments.refusal(["--connection has a meaning only with USER"])
            }
        }
    ) { arguments, context, output in
        guard let user = arguments.operands.first else {
            let state = arguments["state"].flatMap { GrantState(rawValue: $0) }
            let counts = try await retryAll(in: state, ofClient: arguments["client"], by: context)
            output.answer(counts.sentence, json: counts.write)
            return .success
        }
        let (connection, now) = (arguments.connection, context.time.now)
        let (grant, result) = try await context.withExistingStore(for: .changing) { store in
            try await store.transact { transaction in
                guard
                    let outcome = try GrantRetry.retry(
                        grantOfUser: user,
                        connection: connection,
                        in: transaction,
                        at: now
                    )
                else {
                    let grants = try transaction.grants(ofUser: user)
                    throw CommandError(noGrantOf: user, connection: connection, among: grants)
                }
                return outcome
            }
        }
        let failure = failure(to: result, of: grant)
        if failure == nil || output.isJSON {
            let counts = RetryCounts([result: 1])
            output.answer(counts.sentence) { line in
                counts.write(to: &line)
                line.field("connection", connection.description)
            }
        }
        if let failure { throw failure }
        return .success
    }

    private static func retryAll(
        in state: GrantState?,
        ofClient clientID: String?,
        by context: CommandContext
    ) async throws -> RetryCounts {
        let states: [GrantState] = if let state { [state] } else { [.retrying, .suspended] }
        return try await context.withExistingStore(for: .changing) { store in
            var counts: [GrantRetry: Int] = [:]
            for selected in states {
                try await store.changeGrants(
                    in: selected,
                    by: context.time,
                    where: { $0.state == selected && (clientID == nil || $0.clientID == clientID) },
                    counting: &counts
                ) {
                    try GrantRetry.retry($0, includesDisabledAccounts: state == .suspended, in: $1, at: $2)
                }
            }
            return RetryCounts(counts)
        }
    }

    /// Returns the failure to report for a single grant that was not made due, or `nil` if all is well.
    private static func failure(to outcome: GrantRetry, of grant: Grant) -> CommandError? {
        outcome.problem(of: grant).map { problem in
            CommandError(
                outcome == .awaitingConfirmation ? .leftForLater : .userMustAct,
                "the grant of user \(DisplayedText(grant.userID))\(grant.connection.clause) \(problem)"
            )
        }
    }
}
