import Base
import Crypto
import Scheduler

/// What became of the results of a spill file.
struct RecoveredFile: Sendable {
    var summary = ResultRecovery()
    /// For people: some results cannot be read, or belong to grants that are not in this database.
    var problem: String?
    /// The keys that the ring lacks.
    var missingKeys: Set<KeyID> = []
}

extension ResultRecovery {
    /// The outcome in words.
    var sentence: String {
        let verb = stored == 1 ? "is" : "are"
        let outcome = "\(stored.counted("result")) \(verb) stored, \(outdated) out of date"
        return "\(outcome), \(unknown) of grants that are not here"
    }
}
