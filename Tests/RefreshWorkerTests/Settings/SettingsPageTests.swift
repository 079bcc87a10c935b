import TestSupport
import Testing

@testable import RefreshWorker

@Suite("The page of settings")
struct SettingsPageTests {
    @Test("shows the same as the help")
    func isCurrent() throws {
        let rows = Setting.all.map { setting in
            [
                "`\(setting.usage)`<br>`\(setting.name.environmentName)`",
                setting.shownDefault.map { "`\($0)`" } ?? "", Self.afterChange(setting), setting.summary,
            ]
        }
        let columns = ["setting", "default", "after a change", "effect"]
        let table = GeneratedPage.Table("Settings", columns: columns, rows: rows)
        #expect(try GeneratedPage("settings.md", writing: [table]).tables == [table], "run: make pages")
    }

    private static func afterChange(_ setting: Setting) -> String {
        if setting.change.reloadGroup != nil { return "reload" }
        return setting.change.isFileReadAgain ? "reload for the file's content" : ""
    }
}
