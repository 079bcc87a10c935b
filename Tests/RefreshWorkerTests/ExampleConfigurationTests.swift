import Telemetry
import Testing

@testable import RefreshWorker

@Suite("The example configuration")
struct ExampleConfigurationTests {
    private static func example() throws -> String {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let bytes = try FileReader.system.read("/\(root)/deploy/refresh-worker.conf.example")
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("is valid unchanged, and changes only the place of the metrics log")
    func isGood() throws {
        let configuration = try TestMachine(file: Self.example()).resolve()
        #expect(configuration.metricsLog == .file("/var/log/refresh-worker/metrics.jsonl"))
        var machine = TestMachine(file: "")
        machine.flags.append((.metricsLog, "/var/log/refresh-worker/metrics.jsonl"))
        #expect(try machine.resolve() == configuration)
    }

    @Test("says which changes a reload applies")
    func namesReloadable() throws {
        let comments = try Self.example().split(separator: "\n").prefix { $0.hasPrefix("#") }
        let text = comments.map { $0.dropFirst(2) }.joined(separator: " ")
        let names = { (settings: [Setting]) in
            settings.map { $0.name.environmentName.dropFirst(Setting.environmentPrefix.count) }.joined(separator: ", ")
        }
        let (applied, readAgain) = (
            names(Setting.all.filter { $0.change.reloadGroup != nil }),
            names(Setting.all.filter(\.change.isFileReadAgain))
        )
        #expect(text.contains("A reload is enough for \(applied);"))
        #expect(text.contains("for new content of the files of \(readAgain)."))
    }

    @Test("shows every setting that a file may have, with its default")
    func showsAll() throws {
        let text = try Self.example().replacing("#REFRESH_WORKER", with: "REFRESH_WORKER")
            .replacing("#GOOGLE_CLIENT_ID", with: "GOOGLE_CLIENT_ID")
        let entries = EnvironmentFile(parsing: Array(text.utf8)).entries
        for setting in Setting.all where ![.config, .runOnce, .clientID, .metricsLog].contains(setting.name) {
            let entry = try #require(entries.first { $0.key == setting.name.environmentName }, "\(setting.flag)")
            if let defaultValue = setting.defaultValue {
                #expect(entry.value == defaultValue)
            }
        }
        #expect(TestMachine(file: text).complaints.isEmpty)
    }
}
