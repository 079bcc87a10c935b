package import Base

/// Short texts that the backend attaches to a connection, such as its tenant.
///
///     try ConnectionLabels(["tenant": "acme", "feature": "calendar"])
package struct ConnectionLabels: Hashable, Sendable {
    package static let maximumCount = 10
    package static let maximumLength = 64
    package static let lengthRule = "1 to \(maximumLength) bytes"
    package static let rule = """
        must be at most \(maximumCount) pairs of texts of \(lengthRule), and a name has no =
        """
    package static let none = ConnectionLabels(pairs: [:])

    package private(set) var pairs: [String: String]

    private init(pairs: [String: String]) { self.pairs = pairs }

    /// Takes the pairs if they keep the limits.
    ///
    /// A text with a control character is refused, because commands print it. So is a name with `=`, which a search for
    /// `NAME=VALUE` would not find.
    package init?(_ pairs: [String: String]) {
        guard pairs.count <= Self.maximumCount else { return nil }
        let texts = Array(pairs.keys) + Array(pairs.values)
        let areShort = texts.allSatisfy { (1...Self.maximumLength).contains($0.utf8.count) }
        guard areShort, !pairs.keys.contains(where: { $0.utf8.contains(UInt8(ascii: "=")) }) else { return nil }
        guard !texts.contains(where: { $0.unicodeScalars.contains(where: \.disturbsTerminals) }) else {
            return nil
        }
        self.pairs = pairs
    }

    /// Reads the members of a JSON object.
    package init?(_ value: JSONValue) {
        guard let members = value.object else { return nil }
        var pairs: [String: String] = [:]
        for (name, value) in members {
            guard let text = value.string else { return nil }
            pairs[name] = text
        }
        self.init(pairs)
    }

    package var isEmpty: Bool { pairs.isEmpty }

    /// The pairs, sorted by name.
    package var sorted: [(name: String, value: String)] {
        pairs.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }.map { (name: $0.key, value: $0.value) }
    }

    /// Adds the pairs as an object.
    package func write(to line: inout JSONLine, as key: String) {
        line.object(key) { object in
            for (name, value) in sorted { object.field(name, value) }
        }
    }

    /// The text in the database, or `nil` for no label.
    var stored: String? {
        guard !isEmpty else { return nil }
        var line = JSONLine()
        for (name, value) in sorted { line.field(name, value) }
        return line.text
    }

    /// Reads the text in the database. A damaged one counts as no label.
    init(stored text: String?) {
        guard let text, let value = JSONValue.object(in: text.utf8), let labels = ConnectionLabels(value) else {
            self = .none
            return
        }
        self = labels
    }
}
