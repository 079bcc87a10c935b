/// The arguments of `users import`.
struct UserImportOptions: Equatable, Sendable {
    /// `-` is standard input.
    let file: String
    var map = UserFieldMap.unmapped
    var replacesExisting = false
    /// `true` for a dry run: nothing is stored.
    var isDryRun = false
}
