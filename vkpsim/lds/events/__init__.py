"""Events of sessions: `cloudevents` encodes them, `sender` delivers them, `eventfaults` loses or doubles some."""
