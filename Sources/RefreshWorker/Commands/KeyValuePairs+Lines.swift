import Base

/// Names and values in two columns, for people.
extension KeyValuePairs<String, String> {
    var lines: [String] {
        let width = map(\.key.count).max() ?? 0
        return map { name, value in name.padding(to: width + 2) + value }
    }
}
