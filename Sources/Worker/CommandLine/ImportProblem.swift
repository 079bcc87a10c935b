/// The reason why a record of an import is not a valid grant or user.
///
/// It names the field and does not show its value.
package struct ImportProblem: Error, Equatable, Sendable {
    package let message: String
    /// The user whom the record is about, if that could be read.
    package private(set) var userID: String?

    package init(_ message: String) {
        self.message = message
    }

    /// Returns the problem of a record about this user.
    package func naming(_ userID: String) -> Self {
        var problem = self
        problem.userID = userID
        return problem
    }

    /// The message, after the user's name if it is known.
    package var report: String { userID.map { "user \(DisplayedText($0)): \(message)" } ?? message }
}
