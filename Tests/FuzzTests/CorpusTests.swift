import Dispatch
import Foundation
import Testing

/// Runs every committed input, so that a crash that the fuzzer once found stays fixed.
@Suite("The corpora of the fuzzer", .timeLimit(.minutes(10)))
struct CorpusTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("Corpus")

    @Test("violate no property", arguments: FuzzTarget.all.map(\.name))
    func corpus(name: String) async throws {
        let target = try #require(FuzzTarget.named(name))
        let folder = Self.folder.appendingPathComponent(name)
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        #expect(!files.isEmpty, "\(folder.path) has no inputs")
        let inputs = try files.map { Array(try Data(contentsOf: $0)) }
        // A target may block its thread, which must not be one of the few that all async code shares.
        await withCheckedContinuation { done in
            DispatchQueue(label: "fuzz target \(name)").async {
                for input in inputs { target.run(input) }
                done.resume()
            }
        }
    }

    @Test("Every corpus belongs to a target")
    func folders() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
        #expect(Set(folders) == Set(FuzzTarget.all.map(\.name)))
    }
}
