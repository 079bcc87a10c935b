/// The outcome of a change that nobody can undo.
struct MadeChange<Outcome> {
    let outcome: Outcome
    /// `false` after a dry run.
    let isStored: Bool
}
