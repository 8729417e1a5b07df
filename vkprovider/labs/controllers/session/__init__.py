"""Sessions of the Lab Delivery System: `sessions` calls it, `inbox` stores its events, `strays` ends lost sessions."""
