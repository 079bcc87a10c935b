import Testing

@testable import RefreshWorker

@Suite("A changed setting")
struct SettingChangeTests {
    private static func changed(_ name: Setting.Name) throws -> Configuration {
        let text = SettingSample.of(name).given.replacing("ROOT", with: "/tmp")
        // The one setting that a file cannot have.
        if name == .config { return try TestMachine(flags: [(name, text)], files: [text: ""]).resolve() }
        return try TestMachine(environment: needed(by: name).merging([name.environmentName: text]) { $1 }).resolve()
    }

    private static func usual(beside name: Setting.Name) throws -> Configuration {
        try TestMachine(environment: needed(by: name)).resolve()
    }

    /// The settings without which this one is refused.
    private static func needed(by name: Setting.Name) -> [String: String] {
        name == .keyWrapCommand ? [Setting.Name.keyCommand.environmentName: "/usr/bin/true"] : [:]
    }

    @Test("differs in its own value and in no other", arguments: Setting.Name.allCases)
    func differs(name: Setting.Name) throws {
        let (changed, usual) = (try Self.changed(name), try Self.usual(beside: name))
        #expect(Setting.all.filter { $0.change.differs(changed, usual) }.map(\.name) == [name])
    }

    @Test("is applied by a reload, or named as one that needs a restart", arguments: Setting.all.map(\.name))
    func reload(name: Setting.Name) throws {
        let setting = try #require(Setting.named(name))
        let (changed, usual) = (try Self.changed(name), try Self.usual(beside: name))
        let isApplied = setting.change.reloadGroup != nil
        #expect(usual.reloaded(from: changed) == (isApplied ? changed : usual))
        #expect(changed.settingsThatNeedRestart(comparedWith: usual) == (isApplied ? [] : [setting.flag]))
    }

    @Test("that a reload applies is one of these")
    func reloadable() {
        let names = Setting.all.filter { $0.change.reloadGroup != nil }.map(\.name)
        #expect(names == [.clientID, .clientSecretFile, .serverClientID, .logSample, .logLevel, .maxRate])
        #expect(Set(Setting.all.compactMap(\.change.reloadGroup)) == Set(Setting.ReloadGroup.allCases))
    }
}
