import Base
import Scheduler
import Storage
import Telemetry
import Worker

/// `grants retry`: makes grants due now.
struct RetryGrants: Command {
    /// The states in which it finds something to try.
    private static let states = ["suspended", "retrying"]

    static let specification = CommandSpecification(
        words: ["grants", "retry"],
        summary: "make grants due now, without waiting for their back-off or probe",
        discussion: """
            Makes the grant of USER due now, or all grants that fit --state and --client, and prints how many. A \
            running worker refreshes them within two seconds, at its usual pace; the next start or pass does so \
            otherwise. Without --state, --client selects the client's grants that are retrying or suspended.

            Some grants stay as they are, and are counted: those that a worker refreshes at this moment; those whose \
            invalid_grant waits for its confirmation, because an early one would defeat it; and those without a \
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
            .json,
        ],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            Example("refresh-worker grants retry alice", "try alice's grant now"),
            Example("refresh-worker grants retry --state suspended", "after an administrator has lifted a block"),
        ],
        exitCodes: .ofDatabase(.unknownUser, .userMustAct)
    )

    private let user: String?
    private let state: GrantState?
    private let clientID: String?

    init(_ arguments: CommandArguments) throws(UsageError) {
        user = arguments.operands.first
        state = arguments["state"].flatMap { GrantState(rawValue: $0) }
        clientID = arguments["client"]
        switch (user == nil, state != nil || clientID != nil) {
        case (true, false):
            throw arguments.refusal(["'grants retry' takes USER, --state or --client; none was given"])
        case (false, true):
            throw arguments.refusal(["'grants retry' takes either USER, or --state and --client, not both"])
        default: break
        }
    }

    func run(in context: CommandContext) async throws -> ExitCode {
        guard let user else { return try await retryAll(in: context) }
        let now = context.time.now
        let outcome = try await context.withExistingStore(for: .changing) { store in
            try await store.transact { transaction -> (Grant, GrantRetry.Outcome)? in
                guard let grant = try transaction.grant(ofUser: user) else { return nil }
                return (
                    grant,
                    try GrantRetry.retry(grant, includesDisabledAccounts: true, in: transaction, at: now)
                )
            }
        }
        guard let (grant, result) = outcome else { throw CommandFailure(VendingFailure.unknownUser, ofUser: user) }
        var tally = GrantRetryTally()
        tally.count(result)
        let failure = Self.failure(to: result, grant)
        if failure == nil || context.printsJSON { context.answer(tally.sentence, json: tally.write) }
        if let failure { throw failure }
        return .success
    }

    private func retryAll(in context: CommandContext) async throws -> ExitCode {
        let states = state.map { [$0] } ?? [.retrying, .suspended]
        let tally = try await context.withExistingStore(for: .changing) { store in
            var tally = GrantRetryTally()
            for state in states {
                for try await page in GrantPages(store: store, state: state, size: ListGrants.pageSize) {
                    let ids = page.filter { clientID == nil || $0.clientID == clientID }.map(\.id)
                    tally.add(try await retry(ids, in: state, of: store, at: context.time.now))
                }
            }
            return tally
        }
        context.answer(tally.sentence, json: tally.write)
        return .success
    }

    /// Retries the grants that are still in the state: a worker may have changed them since they were read.
    private func retry(
        _ ids: [GrantID],
        in state: GrantState,
        of store: any Store,
        at now: Timestamp
    ) async throws -> GrantRetryTally {
        guard !ids.isEmpty else { return GrantRetryTally() }
        return try await store.transact { transaction in
            var tally = GrantRetryTally()
            try transaction.willRead(grants: ids, healthOf: [])
            for id in ids {
                guard let grant = try transaction.grant(id), grant.state == state else { continue }
                tally.count(
                    try GrantRetry.retry(
                        grant,
                        includesDisabledAccounts: self.state == .suspended,
                        in: transaction,
                        at: now
                    )
                )
            }
            return tally
        }
    }

    /// Returns the failure to report for a single grant that was not made due; `nil` if all is well.
    private static func failure(to outcome: GrantRetry.Outcome, _ grant: Grant) -> CommandFailure? {
        let name = "the grant of user \(DisplayedText(grant.userID))"
        switch outcome {
        case .due, .inFlight, .accountDisabled: return nil
        case .awaitingConfirmation:
            let due = grant.dueAt.map { " at \($0.iso8601Seconds)" } ?? ""
            return CommandFailure(
                .leftForLater,
                "\(name) waits for the confirmation of an invalid_grant\(due), which must not come early"
            )
        case .noRefreshToken:
            return CommandFailure(.userMustAct, "\(name) does not have a refresh token: the user must sign in again")
        case .ended:
            let reason = grant.reason == .none ? "" : " (\(grant.reason))"
            let repair =
                grant.reason == .clientMismatch
                ? "; if the client id is wrong, grants set-client brings the grant back" : ""
            return CommandFailure(
                .userMustAct,
                "\(name) is \(grant.state.rawValue)\(reason): the user must sign in again\(repair)"
            )
        }
    }
}

/// The numbers of grants that `grants retry` made due, and of those that it left.
struct GrantRetryTally: Equatable, Sendable {
    private var counts: [GrantRetry.Outcome: Int] = [:]

    subscript(_ outcome: GrantRetry.Outcome) -> Int { counts[outcome] ?? 0 }

    mutating func count(_ outcome: GrantRetry.Outcome) { counts[outcome, default: 0] += 1 }

    mutating func add(_ other: Self) { counts.merge(other.counts, uniquingKeysWith: +) }

    func write(to line: inout JSONLine) {
        for outcome in GrantRetry.Outcome.allCases { line.field(outcome.rawValue, self[outcome]) }
    }

    /// The text for people; grants that were left are named only if there are any.
    var sentence: String {
        let due = self[.due] == 1 ? "1 grant is due now" : "\(self[.due]) grants are due now"
        let left = GrantRetry.Outcome.allCases.compactMap { outcome -> String? in
            guard self[outcome] > 0, let reason = Self.reason(outcome) else { return nil }
            return "\(self[outcome]) \(reason)"
        }
        return left.isEmpty ? due : "\(due); left as they are: \(left.joined(separator: ", "))"
    }

    private static func reason(_ outcome: GrantRetry.Outcome) -> String? {
        switch outcome {
        case .due: nil
        case .inFlight: "being refreshed at this moment"
        case .awaitingConfirmation: "waiting for the confirmation of an invalid_grant"
        case .accountDisabled: "with a disabled account (use --state suspended to try those)"
        case .noRefreshToken: "without a refresh token"
        case .ended: "ended"
        }
    }
}
