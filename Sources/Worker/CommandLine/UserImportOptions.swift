/// The arguments of `users import`.
package struct UserImportOptions: Equatable, Sendable {
    /// `-` is standard input.
    package let file: String
    package var map = UserFieldMap.unmapped
    package var replacesExisting = false
    /// `true` for a dry run: nothing is stored.
    package var isDryRun = false
    package var isJSON = false
}
