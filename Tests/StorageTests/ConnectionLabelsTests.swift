import Testing

@testable import Base
@testable import Storage

@Suite("The labels of a connection")
struct ConnectionLabelsTests {
    @Test("have limits")
    func limits() {
        let many = Dictionary(uniqueKeysWithValues: (1...11).map { ("\($0)", "x") })
        let long = String(repeating: "x", count: 65)
        for pairs in [many, [long: "x"], ["x": long], ["": "x"], ["x": ""], ["x": "a\u{1b}b"], ["a=b": "x"]] {
            #expect(ConnectionLabels(pairs) == nil)
        }
        #expect(ConnectionLabels(["x": String(repeating: "x", count: 64)])?.pairs.count == 1)
        #expect(ConnectionLabels(stored: ConnectionLabels(["a": "b"])?.stored).pairs == ["a": "b"])
        #expect(ConnectionLabels(stored: "damaged") == .none && ConnectionLabels.none.stored == nil)
    }
}
