import Foundation
import Testing

@testable import Commands
@testable import Worker

@Suite("The page of settings")
struct SettingsPageTests {
    private static let page =
        "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/") + "/docs/settings.md"

    @Test("shows the same as the help")
    func isCurrent() throws {
        if ProcessInfo.processInfo.environment["WRITE_SETTINGS_PAGE"] != nil {
            try SettingsPage.text.write(toFile: Self.page, atomically: true, encoding: .utf8)
        }
        let lines = try String(contentsOfFile: Self.page, encoding: .utf8).split(separator: "\n")
        for line in SettingsPage.text.split(separator: "\n") {
            #expect(lines.contains(line), "run: WRITE_SETTINGS_PAGE=1 swift test --filter SettingsPageTests")
        }
        #expect(lines.count == SettingsPage.text.split(separator: "\n").count)
    }
}
