/// The values in a path for the names in braces of its pattern.
package struct PathValues: Sendable {
    private let values: [(name: String, value: String)]

    init(_ values: [(name: String, value: String)]) {
        self.values = values
    }

    /// - Precondition: the route's pattern has this name.
    package subscript(name: String) -> String {
        guard let value = values.first(where: { $0.name == name })?.value else {
            preconditionFailure("the pattern has no {\(name)}")
        }
        return value
    }
}
