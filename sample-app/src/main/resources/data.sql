merge into plans (customer, rate, capacity) values ('alice', '20/1m', 20), ('bob', '60/1m', 100);
