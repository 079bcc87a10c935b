import Glibc
import Storage

extension CommandContext {
    /// Makes a change that nobody can undo, in one transaction.
    ///
    /// On a terminal a person first reads the plan and agrees, unless `--yes` is given. A script has decided already.
    /// With `--dry-run` nothing changes. The plan is the outcome of the change itself, which is rolled back.
    ///
    /// Returns the outcome, and whether it was stored. Throws `missing` if there is nothing to change, and closes the
    /// store whenever it throws.
    func change<Outcome: Sendable>(
        _ store: any Store,
        _ arguments: CommandArguments,
        missing: CommandError,
        plan: (Outcome) -> String,
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Outcome?
    ) async throws -> (outcome: Outcome, isStored: Bool) {
        do {
            let isDryRun = arguments.has("dry-run")
            if isDryRun || Question.isPossible && !arguments.has("yes") {
                guard let planned = try await store.rehearse(body) else { throw missing }
                if isDryRun {
                    await store.close()
                    return (planned, false)
                }
                guard try await Question.agrees(to: plan(planned)) else {
                    throw CommandError(.interrupted, "nothing was changed")
                }
            }
            guard let outcome = try await store.transact(body) else { throw missing }
            return (outcome, true)
        } catch {
            await store.close()
            throw error
        }
    }
}

/// A question to the person at the terminal.
enum Question {
    /// `true` if a person reads standard error and types into standard input.
    static var isPossible: Bool { isatty(STDIN_FILENO) == 1 && Output.error.isTerminal }

    static func agrees(to plan: String) async throws -> Bool {
        Output.error.write("This will \(plan). It cannot be undone. Go on? [y/N] ")
        let queue = BlockingCallQueue(label: "refresh-worker.question")
        return isConsent(try await queue.run { readLine() })
    }

    /// Only a clear yes is one: the end of the input is not.
    static func isConsent(_ line: String?) -> Bool {
        ["y", "yes"].contains(line?.lowercased().filter { !$0.isWhitespace })
    }
}

/// The outcome of a change that is rolled back.
private struct Rehearsal<Outcome: Sendable>: Error {
    let outcome: Outcome
}

extension Store {
    /// Returns the outcome of a transaction that is rolled back.
    fileprivate func rehearse<Outcome: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Outcome
    ) async throws -> Outcome {
        do {
            return try await transact { throw Rehearsal(outcome: try body($0)) }
        } catch let rehearsal as Rehearsal<Outcome> {
            return rehearsal.outcome
        }
    }
}
