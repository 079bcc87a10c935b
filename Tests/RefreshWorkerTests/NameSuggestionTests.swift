import Testing

@testable import RefreshWorker

@Suite("A mistyped name")
struct NameSuggestionTests {
    @Test(
        "has one edit for each mistake",
        arguments: [("", "", 0), ("a", "", 1), ("abc", "abc", 0), ("acb", "abc", 1), ("kitten", "sitting", 3)]
    )
    func distance(left: String, right: String, expected: Int) {
        #expect(editDistance(Array(left.utf8), Array(right.utf8)) == expected)
    }

    @Test(
        "leads to the nearest name, or to none",
        arguments: [
            ("databse", "database"), ("KEY-FIEL", "key-file"), ("xyz", nil), (String(repeating: "d", count: 65), nil),
        ]
            as [(String, String?)]
    )
    func nearest(name: String, expected: String?) {
        #expect(name.nearest(among: ["database", "key-file", "max-rate"]) == expected)
    }
}
