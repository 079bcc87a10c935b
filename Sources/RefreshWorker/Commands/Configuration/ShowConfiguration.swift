import Base

extension Command {
    /// `config show`: prints every setting with its value and where that comes from.
    static let showConfiguration = Command(
        words: ["config", "show"],
        summary: "show every setting, its value and where it comes from",
        discussion: """
            Shows the settings that this command line, the environment and the configuration file give, and the \
            defaults of the others. A wrong value ends it with an error, as it ends the worker. Never prints a \
            password or a token. The service can have further flags and variables, in its unit or its container.
            """,
        options: [.json],
        settings: [.config],
        examples: [
            "refresh-worker config show": "what do commands and the service read?",
            "refresh-worker config show --json | jq -r 'select(.source != \"default\").setting'":
                "the settings that are not defaults",
        ],
        exitCodes: [.success, .usage, .internalFailure, .inputOutput, .configuration]
    ) { _, context, output in
        let settings = ConfigurationResolver(context.givenInputs).shown()
        guard output.isJSON else {
            Output.standard.write(settings.text(for: output.form))
            return .success
        }
        for setting in settings {
            var line = JSONLine()
            setting.write(to: &line)
            Output.standard.line(line.bytes)
        }
        return .success
    }
}

extension CommandContext {
    /// The inputs without the flag that names the file which was found, so that a reload reads the same one.
    fileprivate var givenInputs: ConfigurationInputs {
        var given = inputs
        if configuration.configurationFile != nil, let last = given.flags.lastIndex(where: { $0.name == .config }) {
            given.flags.remove(at: last)
        }
        return given
    }
}

extension ShownSetting {
    fileprivate func write(to line: inout JSONLine) {
        line.field("setting", name.rawValue)
        line.fieldOrNull("value", value)
        line.field("source", source.rawValue)
        line.fieldOrNull("place", place)
    }
}

extension [ShownSetting] {
    /// The settings below a title for each source, those of highest precedence first.
    func text(for form: TextForm) -> String {
        ShownSetting.Source.allCases.compactMap { source in
            let settings = filter { $0.source == source }
            return settings.isEmpty ? nil : settings.section(source, for: form)
        }
        .joined(separator: "\n")
    }

    private func section(_ source: ShownSetting.Source, for form: TextForm) -> String {
        // Its path is in the title, so the lines have the number alone.
        var title = source.title
        if let file = first?.file { title += " " + file }
        title += ":\n"
        guard source != .unset else {
            let names = map(\.name.rawValue).joined(separator: ", ")
            return title + form.folded(names, after: "  ") + "\n"
        }
        let column = (map(\.name.rawValue.count).max() ?? 0) + 4
        let lines = map { setting in
            let start = ("  " + setting.name.rawValue).padding(to: column)
            return form.folded((setting.value ?? "") + setting.note, after: start)
        }
        return title + lines.joined(separator: "\n") + "\n"
    }
}

extension ShownSetting {
    /// What follows the value: the variable, or the number of the line.
    fileprivate var note: String {
        if let variable = origin?.variable { return " (\(variable))" }
        if let line = origin?.fileLine { return " (line \(line.number))" }
        return ""
    }

    /// The configuration file, if the value is from there.
    fileprivate var file: String? { origin?.fileLine?.path }
}

extension ShownSetting.Source {
    fileprivate var title: String {
        switch self {
        case .flag: "From the command line"
        case .environment: "From the environment"
        case .file: "From the configuration file"
        case .credential: "From systemd, which passes these files to the service"
        case .standard: "Defaults"
        case .unset: "Not set"
        }
    }
}
