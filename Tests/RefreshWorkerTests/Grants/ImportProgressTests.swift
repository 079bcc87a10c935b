import Testing

@testable import Commands

@Suite("The progress of an import")
struct ImportProgressTests {
    private let tally = ImportTally(stored: 1_990, bad: 10)

    @Test("shows the rate and, for a file, the remaining time")
    func file() {
        let text = ImportProgress.text(tally, of: "grants", done: 0.2, elapsed: .seconds(20))
        #expect(text == "2000 grants read, 10 bad, 100/s, 20 %, 1 min 20 s left")
    }

    @Test("shows no remaining time where it is not known", arguments: [nil, 0, 1] as [Double?])
    func unknown(fraction: Double?) {
        let text = ImportProgress.text(tally, of: "users", done: fraction, elapsed: .seconds(20))
        #expect(text == "2000 users read, 10 bad, 100/s")
    }
}
