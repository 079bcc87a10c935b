/// The values in a path for the names in braces of its pattern.
package struct PathValues: Sendable {
    let parts: [String]
    let segments: [String]

    /// - Precondition: the route's pattern has this name.
    package subscript(name: String) -> String {
        guard let position = parts.firstIndex(of: "{\(name)}") else {
            preconditionFailure("the pattern has no {\(name)}")
        }
        return segments[position]
    }
}
