/// The reason why a piece of input is not a valid grant.
///
/// It names the field and never shows a value.
struct ImportProblem: Error, Equatable, Sendable {
    let message: String

    init(_ message: String) {
        self.message = message
    }
}
