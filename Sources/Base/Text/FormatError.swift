/// Why a text is not what it should be, such as JSON, a URL or a list of services.
///
/// It never quotes the text, which can hold a secret.
package struct FormatError: Error, Hashable, Sendable, CustomStringConvertible {
    package let problem: String
    /// The byte at which the problem is, in JSON.
    package let offset: Int?

    package init(_ problem: String, at offset: Int? = nil) {
        self.problem = problem
        self.offset = offset
    }

    package var description: String {
        guard let offset else { return problem }
        return "\(problem) at byte \(offset)"
    }
}
