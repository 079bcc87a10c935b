import Foundation
import Records
import Storage
import Testing

@testable import RefreshWorker

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

@Suite("An import that the database stops")
struct StoppedImportTests {
    /// An import whose first batch the store refuses with this error.
    private struct Refused: RecordImport {
        let error: StoreError
        let report: (String) -> Void = { _ in }
        var tally = ImportTally()
        var splitter = RecordSplitter()
        var batch: [ImportReading<Int>] = []

        func read(_ record: RecordSplitter.Record) -> [ImportReading<Int>] {
            [ImportReading(place: record.place, result: .success(1))]
        }
        func store(_ batch: [Int]) async throws -> [Int] { throw error }
        func count(_ outcome: Int, of imported: Int, at place: String) {}
        func summary(isDryRun: Bool) -> String { "" }
    }

    @Test("by one read with wrong data ends with 74 if a second read finds the file intact")
    func intact() async throws {
        let fixture = try ImportFixture()
        let input = fixture.folder + "/input"
        try "{}\n".write(toFile: input, atomically: true, encoding: .utf8)
        var error = StoreError(.corrupt, "damaged data")
        error.suspectedFile = fixture.folder + "/grants.sqlite"
        let run = ImportRun(
            file: try InputFile(path: input),
            progress: ImportProgress(of: "grants", time: fixture.time),
            isDryRun: false,
            isJSON: false,
            close: {}
        )
        let failure = await #expect(throws: CommandError.self) { try await run.perform(Refused(error: error)) }
        #expect(failure?.exitCode == .inputOutput)
        #expect(failure?.message.contains("a second read found the whole file intact") == true)
    }
}
