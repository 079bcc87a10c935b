extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "<secret>" }

    package var debugDescription: String { description }

    /// Empty, because `dump` and whatever else walks mirrors would pass by the descriptions.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
