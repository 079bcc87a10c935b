@testable import Commands
@testable import Worker

/// The page `docs/settings.md`, made from the table behind `--help`.
enum SettingsPage {
    static var text: String {
        let rows = Setting.all.map { setting in
            let cells = [
                "`\(setting.usage)`<br>`\(setting.name.environmentName)`",
                setting.shownDefault.map { "`\($0)`" } ?? "",
                afterChange(setting),
                setting.summary,
            ]
            return "| " + cells.joined(separator: " | ") + " |\n"
        }
        return introduction + rows.joined()
    }

    private static func afterChange(_ setting: Setting) -> String {
        if setting.change.reloadGroup != nil { return "reload" }
        return setting.change.isFileReadAgain ? "restart; for the file's content, reload" : "restart"
    }

    private static let introduction = """
        # Settings

        This page is made from the table behind `refresh-worker --help`; a test compares both. To write it again, run
        `WRITE_SETTINGS_PAGE=1 swift test --filter SettingsPageTests`.

        A setting is a flag, an environment variable, or a line of the file that `--config` names, in this order of precedence. An empty
        value counts as not set.

        After a change, `systemctl restart refresh-worker` applies every setting. Where the table says reload,
        `systemctl reload refresh-worker` is enough. A reload happens as a whole or not at all, and the log names the changed settings that
        need a restart.

        | setting | default | after a change | effect |
        |---|---|---|---|

        """
}
