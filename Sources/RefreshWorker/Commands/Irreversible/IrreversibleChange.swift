import Base
import Glibc
import Storage

/// A change of a user or of the user's grants that nobody can undo, in one transaction.
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

    /// Makes the change with `body`, which throws if there is nothing to change.
    ///
    /// Without a `connection` it concerns all grants of the user. It closes the store whenever it throws, and after a dry
    /// run.
    func make<Outcome: Sendable>(
        in store: any Store,
        of connection: ConnectionID? = nil,
        plan: @escaping @Sendable (Outcome) -> String,
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Outcome
    ) async throws -> MadeChange<Outcome> {
        do {
            guard isDryRun || asks else {
                return MadeChange(outcome: try await store.transact(body), isStored: true)
            }
            let planned = try await store.rehearse { transaction in
                (grants: try grants(of: connection, in: transaction), outcome: try body(transaction))
            }
            if isDryRun {
                await store.close()
                return MadeChange(outcome: planned.outcome, isStored: false)
            }
            let shown = plan(planned.outcome)
            guard try await Self.agrees(to: shown) else { throw CommandError(.interrupted, "nothing was changed") }
            let now = time.now
            let outcome = try await store.transact { transaction in
                let stored = try grants(of: connection, in: transaction)
                if let change = Self.firstChange(from: planned.grants, to: stored) {
                    throw CommandError(changed: change.former, to: change.stored, ofUser: user, at: now)
                }
                let outcome = try body(transaction)
                guard plan(outcome) == shown else { throw CommandError(planChangedTo: plan(outcome)) }
                return outcome
            }
            return MadeChange(outcome: outcome, isStored: true)
        } catch {
            await store.close()
            throw error
        }
    }

    private func grants(of connection: ConnectionID?, in transaction: any StoreTransaction) throws -> [Grant] {
        let all = try transaction.grants(ofUser: user)
        guard let connection else { return all }
        return all.filter { $0.connection == connection }
    }

    /// Returns the first grant that is another one than a person has seen, or is gone or new.
    private static func firstChange(
        from planned: [Grant],
        to stored: [Grant]
    ) -> (former: Grant?, stored: Grant?)? {
        for id in Set(planned.map(\.id)).union(stored.map(\.id)).sorted() {
            let former = planned.first { $0.id == id }
            let current = stored.first { $0.id == id }
            if former?.version != current?.version { return (former, current) }
        }
        return nil
    }

    /// `true` if a person reads standard error and types into standard input.
    private static var canAsk: Bool { isatty(STDIN_FILENO) == 1 && Output.error.isTerminal }

    private static func agrees(to plan: String) async throws -> Bool {
        Output.error.write("This will \(plan). It cannot be undone. Go on? [y/N] ")
        let queue = BlockingCallQueue(label: "refresh-worker.question")
        return isConsent(await queue.run { readLine() })
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
        var owner = "\(DisplayedText(user))"
        if let known = former ?? grant { owner += known.connection.clause }
        self.init(
            .leftForLater,
            "nothing was changed, because the grant of user \(owner) \(change): run the command again"
        )
    }

    fileprivate init(planChangedTo plan: String) {
        self.init(.leftForLater, "nothing was changed, because this would now \(plan): run the command again")
    }
}
