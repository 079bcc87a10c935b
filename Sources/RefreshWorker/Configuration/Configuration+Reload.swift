extension Configuration {
    /// Returns the flags of the settings that differ and that a reload does not apply.
    func settingsThatNeedRestart(comparedWith running: Configuration) -> [String] {
        Setting.all.filter { $0.change.reloadGroup == nil && $0.change.differs(self, running) }.map(\.flag)
    }

    /// Returns this configuration with the values of another for the settings that a reload applies.
    func reloaded(from latest: Configuration) -> Configuration {
        var result = self
        for setting in Setting.all { setting.change.apply(latest, &result) }
        return result
    }
}
