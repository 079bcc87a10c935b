import Base
import Glibc
import Storage

/// A change of a user or the user's grant that nobody can undo, in one transaction.
///
/// On a terminal a person first reads the plan and agrees, unless `--yes` is given. A script has decided already. With
/// `--dry-run` nothing changes. The plan is the outcome of the change itself, which is rolled back. If another process
/// has changed what the person agreed to, the change is refused.
struct IrreversibleChange {
    let user: String
    let isDryRun: Bool
    /// `true` if a person must agree.
    let asks: Bool
    let time: any TimeSource

    init(of user: String, given arguments: CommandArguments, by time: any TimeSource) {
        self.user = user
        isDryRun = arguments.has("dry-run")
        asks = Self.canAsk && !arguments.has("yes")
        self.time = time
    }

    /// Makes the change with `body`, or throws `missing` if there is nothing to change.
    ///
    /// It closes the store whenever it throws, and after a dry run.
    func make<Outcome: Sendable>(
        in store: any Store,
        missing: CommandError,
        plan: @escaping @Sendable (Outcome) -> String,
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Outcome?
    ) async throws -> MadeChange<Outcome> {
        do {
            guard isDryRun || asks else {
                guard let outcome = try await store.transact(body) else { throw missing }
                return MadeChange(outcome: outcome, isStored: true)
            }
            let planned = try await store.rehearse { transaction in
                (grant: try transaction.grant(ofUser: user), outcome: try body(transaction))
            }
            guard let plannedOutcome = planned.outcome else { throw missing }
            if isDryRun {
                await store.close()
                return MadeChange(outcome: plannedOutcome, isStored: false)
            }
            let shown = plan(plannedOutcome)
            guard try await Self.agrees(to: shown) else { throw CommandError(.interrupted, "nothing was changed") }
            let now = time.now
            let outcome = try await store.transact { transaction in
                let stored = try transaction.grant(ofUser: user)
                guard stored?.version == planned.grant?.version else {
                    throw CommandError(changed: planned.grant, to: stored, ofUser: user, at: now)
                }
                guard let outcome = try body(transaction) else { throw missing }
                guard plan(outcome) == shown else { throw CommandError(planChangedTo: plan(outcome)) }
                return outcome
            }
            return MadeChange(outcome: outcome, isStored: true)
        } catch {
            await store.close()
            throw error
        }
    }

    /// `true` if a person reads standard error and types into standard input.
    private static var canAsk: Bool { isatty(STDIN_FILENO) == 1 && Output.error.isTerminal }

    private static func agrees(to plan: String) async throws -> Bool {
        Output.error.write("This will \(plan). It cannot be undone. Go on? [y/N] ")
        let queue = BlockingCallQueue(label: "refresh-worker.question")
        return isConsent(try await queue.run { readLine() })
    }

    /// Only a clear yes is one: the end of the input is not.
    static func isConsent(_ line: String?) -> Bool {
        ["y", "yes"].contains(line?.lowercased().filter { !$0.isWhitespace })
    }
}

extension CommandError {
    fileprivate init(changed former: Grant?, to grant: Grant?, ofUser user: String, at now: Timestamp) {
        let state = { (grant: Grant?) in
            grant.map { "\($0.stateWithReason), since \($0.since.shown(at: now))" } ?? "not stored"
        }
        let (before, after) = (state(former), state(grant))
        let change = before == after ? "has another refresh token" : "was \(before), and is \(after)"
        self.init(
            .leftForLater,
            "nothing was changed, because the grant of user \(DisplayedText(user)) \(change): run the command again"
        )
    }

    fileprivate init(planChangedTo plan: String) {
        self.init(.leftForLater, "nothing was changed, because this would now \(plan): run the command again")
    }
}
