/// What `users import` is asked to do.
struct UserImportOrder: Equatable, Sendable {
    /// `-` is standard input.
    let file: String
    var map = UserFieldMap.unmapped
    var replacesExisting = false
    /// `true` if everything is done but storing.
    var isDryRun = false
}
