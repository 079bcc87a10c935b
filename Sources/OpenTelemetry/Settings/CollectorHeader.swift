/// A header of each request to a collector, such as one with an API key. It is never printed.
package struct CollectorHeader: Equatable, Sendable {
    package let name: String
    package let value: String

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

extension [CollectorHeader] {
    /// All headers of a request to a collector.
    package var ofRequest: [(String, String)] {
        [("Content-Type", "application/json")] + map { ($0.name, $0.value) }
    }
}

extension CollectorHeader: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "<header \(name)>" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}
