import Testing

@testable import Base
@testable import Storage

@Suite("The ids of connections")
struct ConnectionIDTests {
    @Test("are short and safe in an address", arguments: ["default", "a", "A-b_9", String(repeating: "x", count: 32)])
    func accepted(text: String) throws { #expect(ConnectionID(text)?.description == text) }

    @Test(
        "are nothing else",
        arguments: ["", "new", "google", "a b", "a/b", "é", "a.b", String(repeating: "x", count: 33)]
    )
    func refused(text: String) { #expect(ConnectionID(text) == nil) }

    @Test("are random and hard to mix up")
    func random() {
        let random = SeededRandom(seed: 3)
        let ids = (0..<1000).map { _ in ConnectionID.random(from: random).description }
        #expect(Set(ids).count == 1000)
        #expect(ids.allSatisfy { $0.utf8.count == 10 && $0.hasPrefix("c") && !$0.contains("l") && !$0.contains("o") })
        #expect(ids.allSatisfy { ConnectionID($0) != nil })
    }
}
