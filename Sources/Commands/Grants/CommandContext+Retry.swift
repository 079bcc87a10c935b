import Base
import Scheduler
import Storage
import Telemetry
package import Worker

/// `grants retry`: makes grants due now.
extension CommandContext {
    package func retryGrants(_ options: GrantRetryOptions) async throws -> ExitCode {
        guard let user = options.user else { return try await retryAll(options) }
        let now = time.now
        let outcome = try await withExistingStore(for: .changing) { store in
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
        if let failure = Self.failure(to: result, grant) {
            if options.isJSON { Output.standard.line(tally.json.bytes) }
            throw failure
        }
        Output.standard.line(options.isJSON ? tally.json.text : tally.sentence)
        return .success
    }

    private func retryAll(_ options: GrantRetryOptions) async throws -> ExitCode {
        let states = options.state.map { [$0] } ?? [GrantState.retrying, .suspended].map(\.rawValue)
        let tally = try await withExistingStore(for: .changing) { store in
            var tally = GrantRetryTally()
            for state in states.compactMap(GrantState.init(rawValue:)) {
                for try await page in GrantPages(store: store, state: state, size: Self.pageSize) {
                    let ids = page.filter { options.clientID == nil || $0.clientID == options.clientID }.map(\.id)
                    tally.add(try await retry(ids, in: state, options, store: store))
                }
            }
            return tally
        }
        Output.standard.line(options.isJSON ? tally.json.text : tally.sentence)
        return .success
    }

    /// Retries the grants that are still in the state: a worker may have changed them since they were read.
    private func retry(
        _ ids: [GrantID],
        in state: GrantState,
        _ options: GrantRetryOptions,
        store: any GrantStore
    ) async throws -> GrantRetryTally {
        guard !ids.isEmpty else { return GrantRetryTally() }
        let now = time.now
        return try await store.transact { transaction in
            var tally = GrantRetryTally()
            try transaction.willRead(grants: ids, healthOf: [])
            for id in ids {
                guard let grant = try transaction.grant(id), grant.state == state else { continue }
                tally.count(
                    try GrantRetry.retry(
                        grant,
                        includesDisabledAccounts: options.state == GrantState.suspended.rawValue,
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

    var json: JSONLine {
        var line = JSONLine()
        for outcome in GrantRetry.Outcome.allCases { line.field(outcome.rawValue, self[outcome]) }
        return line
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
